// The contract that the documentation shows. `accord install` and `accord regenerate`
// write it to the data folder. Until then, a change of openapi.yaml does not appear.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writeFileAtomic } from './atomic-file.ts'
import { toYamlInWorker } from './yaml.ts'

export interface Published {
  /** The contract as JSON. All responses share this buffer. */
  json: Buffer
  yaml(): Promise<Buffer>
  etag: string
  /** The hash of the source openapi.yaml. */
  hash: unknown
  /** `outdated` when openapi.yaml has changed since the contract was published. */
  state: 'ok' | 'outdated'
}

const publishedName = 'openapi.json'

/** Writes the contract as JSON to the data folder. */
export function publish(dataDir: string, generated: object): void {
  mkdirSync(dataDir, { recursive: true })
  writeFileAtomic(join(dataDir, publishedName), JSON.stringify(generated))
  // Older versions also wrote this file.
  rmSync(join(dataDir, 'openapi.yaml'), { force: true })
}

/**
 * Returns a function that returns the published contract, or null when it is missing or invalid.
 * The contract is read again when its file changes. `source` is the path of openapi.yaml, which may
 * be missing. The state `outdated` results from a comparison with it.
 */
export function publishedIn(dataDir: string, source: string): () => Published | null {
  const contract = rereading(join(dataDir, publishedName), (json): Omit<Published, 'state'> | null => {
    // Only the bytes stay in memory, because the parsed document needs ten times as much memory.
    const document: unknown = JSON.parse(json)
    if (typeof document !== 'object' || document === null || Array.isArray(document)) return null
    return { ...renderingsOf(json), hash: (document as Record<string, unknown>)['x-contract-hash'] }
  })
  const sourceHash = rereading(source, sha256)
  return () => {
    const found = contract()
    if (found === null) return null
    const yours = sourceHash()
    return { ...found, state: yours !== null && yours !== found.hash ? 'outdated' : 'ok' }
  }
}

/** The additions of an installation to the contract, such as custom attributes. */
export interface Additions {
  /** A text that changes when the additions change. */
  revision: string
  /** Returns the document with the additions, or the same object if there are none. */
  to<D extends object>(document: D): D
}

/**
 * Returns a function that returns the published contract with the additions of this installation.
 * Caches the result until the contract or the additions change.
 */
export function servedWith(
  published: () => Published | null,
  additions: () => Promise<Additions>,
): () => Promise<Published | null> {
  let known: { of: string; made: Published } | null = null
  return async () => {
    const base = published()
    if (base === null) return null
    const { revision, to } = await additions()
    const of = `${base.etag} ${revision}`
    if (known?.of !== of) known = { of, made: extended(base, to) }
    return { ...known.made, state: base.state }
  }
}

function extended(base: Published, to: Additions['to']): Published {
  const document = JSON.parse(base.json.toString()) as object
  const extended = to(document)
  if (extended === document) return base
  return { ...base, ...renderingsOf(JSON.stringify(extended)) }
}

/** Returns the contract as bytes. A worker thread creates the YAML at the first request for it. */
function renderingsOf(json: string): Pick<Published, 'json' | 'yaml' | 'etag'> {
  let yaml: Promise<Buffer> | undefined
  return {
    json: Buffer.from(json),
    etag: etagOf(json),
    yaml() {
      yaml ??= toYamlInWorker(json).catch((cause: unknown) => {
        yaml = undefined
        throw cause
      })
      return yaml
    },
  }
}

/**
 * Returns a function that returns the result of `read` for a file, or null while the file cannot be
 * read. Caches the result until the file changes.
 */
function rereading<T>(path: string, read: (text: string) => T | null): () => T | null {
  let known: { mtimeMs: number; made: T | null } | null = null
  return () => {
    try {
      const { mtimeMs } = statSync(path)
      if (known?.mtimeMs !== mtimeMs) known = { mtimeMs, made: read(readFileSync(path, 'utf8')) }
      return known.made
    } catch {
      known = null
      return null
    }
  }
}

const etagOf = (json: string): string => `"${sha256(json).slice(0, 22)}"`
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
