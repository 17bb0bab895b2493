// Reads the script and the styles of Swagger UI from the package @fastify/swagger-ui. The plug-in
// itself is not used: loading it blocks the event loop, and it compresses files at each request.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type PageFile, pageFile } from './sent-file.ts'

const { resolve } = createRequire(import.meta.url)
const manifest = '@fastify/swagger-ui/package.json'

export const swaggerFileTypes: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
}

const known = new Map<string, Promise<PageFile>>()

/** Returns a file of Swagger UI. Later calls return the same promise, unless it was rejected. */
export function swaggerFile(name: string): Promise<PageFile> {
  const path = join(dirname(resolve(manifest)), 'static', name)
  const found =
    known.get(name) ?? readFile(path, 'utf8').then((text) => pageFile(swaggerFileTypes[name] ?? 'text/plain', text))
  known.set(name, found)
  found.catch(() => known.delete(name))
  return found
}

/** Returns the version of @fastify/swagger-ui. */
export function swaggerUiVersion(): string {
  const require = createRequire(import.meta.url)
  const { version } = require(manifest) as { version: string }
  return version
}
