// Reads the scripts, styles and icon of the documentation pages. Their URLs contain a version, so
// browsers can cache them for a year.
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { byteTag } from '../../kernel/write/etag.ts'
import { mark } from './assets.ts'
import { type PageFile, pageFile } from './sent-file.ts'
import { swaggerUiVersion } from './swagger-ui.ts'

const folder = fileURLToPath(new URL('./browser', import.meta.url))

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export interface PageFiles {
  /** A hash of all files. */
  version: string
  files: ReadonlyMap<string, PageFile>
}

/** Reads the files of the folder `browser`. */
export function readPageFiles(): PageFiles {
  const files = new Map<string, PageFile>([['favicon.svg', pageFile(types['.svg'] as string, mark)]])
  for (const name of readdirSync(folder).sort()) {
    const type = types[extname(name)]
    if (type === undefined) continue
    const text = readFileSync(join(folder, name), 'utf8')
    files.set(name, pageFile(type, text.replaceAll('SWAGGER_UI_VERSION', swaggerUiVersion())))
  }
  const version = byteTag(JSON.stringify([...files])).replaceAll('"', '')
  return { version, files }
}

/** Returns the names of the files, without reading them. */
export const pageFileNames = (): string[] => [
  'favicon.svg',
  ...readdirSync(folder).filter((name) => types[extname(name)] !== undefined),
]
