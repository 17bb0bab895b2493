// A registry of npm on loopback. It serves the installed packages, packed again from node_modules,
// and one more package.
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { lockfile } from '../licences.ts'

export interface Registry {
  url: string
  /** The packages whose tarballs were fetched, as `name@version`. */
  fetched: string[]
  close(): Promise<void>
}

interface Manifest {
  name: string
  version: string
}

/** `extra` is the path of a tarball that contains npm-shrinkwrap.json. */
export async function openRegistry(extra: string): Promise<Registry> {
  const added = JSON.parse(
    execFileSync('tar', ['-xzOf', extra, 'package/package.json'], { encoding: 'utf8' }),
  ) as Manifest
  const folders = Object.keys(lockfile()).filter((path) => path !== '')
  const fetched: string[] = []
  const read = (folder: string): Manifest | null => {
    try {
      return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    } catch {
      // An optional package of another platform.
      return null
    }
  }
  let url = ''
  const describeVersion = (manifest: Manifest, path: string) => ({
    ...manifest,
    dist: {
      tarball: `${url}/-/${encodeURIComponent(path)}?package=${encodeURIComponent(`${manifest.name}@${manifest.version}`)}`,
    },
  })
  const server: Server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    const name = decodeURIComponent(pathname.slice(1))
    if (name.startsWith('-/')) {
      fetched.push(searchParams.get('package') ?? '')
      response.end(await packFolder(name.slice(2)))
      return
    }
    const versions = folders.flatMap((folder) => {
      const manifest =
        folder === `node_modules/${name}` || folder.endsWith(`/node_modules/${name}`) ? read(folder) : null
      return manifest === null ? [] : [describeVersion(manifest, folder)]
    })
    if (name === added.name) versions.push({ ...describeVersion(added, extra), _hasShrinkwrap: true } as never)
    response.writeHead(versions.length > 0 ? 200 : 404, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: versions[0]?.version },
        versions: Object.fromEntries(versions.map((each) => [each.version, each])),
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, fetched, close: () => new Promise((resolve) => server.close(() => resolve())) }
}

async function packFolder(path: string): Promise<Buffer> {
  if (path.endsWith('.tgz')) return readFileSync(path)
  const options = { encoding: 'buffer' as const, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(
    'tar',
    ['-czf', '-', '--exclude=./node_modules', '-C', path, '.'],
    options,
  )
  return stdout
}
