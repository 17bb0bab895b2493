// A picture for tests, and a list of the files that a server has on disk.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestServer } from './app.ts'

/** The smallest PNG: one pixel. */
export const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Returns all paths in the file folder, such as `3f/3f9a…`, including temporary files. */
export async function keptBytes(server: TestServer): Promise<string[]> {
  const folder = join(server.app.services.config.dataDir, 'files')
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return names
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(folder.length + 1))
    .filter((name) => !name.startsWith('trash/'))
    .sort()
}
