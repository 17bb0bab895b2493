// The contract as this installation serves it: written into the data folder by `accord install` and `accord regenerate`,
// read by the docs. Until it is written again, a changed openapi.yaml does not show (DOMAIN 26).
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Published {
  document: Record<string, unknown>
  json: string
  yaml: string
  etag: string
  /** `outdated` when openapi.yaml has changed since. */
  state: 'ok' | 'outdated'
}

const names = { json: 'openapi.json', yaml: 'openapi.yaml' }

/** Writes the generated contract and its source into the data folder. Each file appears whole or not at all. */
export function publish(dataDir: string, generated: object, yaml: string): void {
  mkdirSync(dataDir, { recursive: true })
  for (const [name, text] of [
    [names.yaml, yaml],
    [names.json, JSON.stringify(generated)],
  ] as const) {
    const path = join(dataDir, name)
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
}

/**
 * What `publish` wrote, read again when the file has changed; null when there is none. `source` is the openapi.yaml of
 * this program, to tell whether the published one is the same.
 */
export function publishedIn(dataDir: string, source: () => string | null): () => Published | null {
  let known: { mtimeMs: number; published: Published } | null = null
  return () => {
    const path = join(dataDir, names.json)
    const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    if (mtimeMs === undefined) return null
    if (known?.mtimeMs === mtimeMs) return known.published
    const json = readFileSync(path, 'utf8')
    const document = JSON.parse(json) as Record<string, unknown>
    const yaml = readFileSync(join(dataDir, names.yaml), 'utf8')
    const yours = source()
    const published: Published = {
      document,
      json,
      yaml,
      etag: `"${sha256(json).slice(0, 22)}"`,
      state: yours !== null && sha256(yours) !== document['x-contract-hash'] ? 'outdated' : 'ok',
    }
    known = { mtimeMs, published }
    return published
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
