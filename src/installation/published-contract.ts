// The contract as this installation serves it: written into the data folder by `accord install` and `accord regenerate`,
// read by the docs. Until it is written again, a changed openapi.yaml does not show (DOMAIN 26).
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writeFileAtomic } from './atomic-file.ts'
import { toYamlInWorker } from './yaml.ts'

export interface Published {
  /** Bytes, made once: many who ask for it at the same time share them. */
  json: Buffer
  yaml(): Promise<Buffer>
  etag: string
  /** Of the openapi.yaml it was made from. */
  hash: unknown
  /** `outdated` when openapi.yaml has changed since. */
  state: 'ok' | 'outdated'
}

const names = { json: 'openapi.json', yaml: 'openapi.yaml' }

/** Writes the generated contract and its source into the data folder. Each file appears whole or not at all. */
export function publish(dataDir: string, generated: object, yaml: string): void {
  mkdirSync(dataDir, { recursive: true })
  writeFileAtomic(join(dataDir, names.yaml), yaml)
  writeFileAtomic(join(dataDir, names.json), JSON.stringify(generated))
}

/**
 * What `publish` wrote, read again when the file has changed; null when there is none, or none that can be read. `source` is
 * the openapi.yaml of this program, to tell whether the published one is the same; not every installation has it.
 */
export function publishedIn(dataDir: string, source: string): () => Published | null {
  const contract = rereading(join(dataDir, names.json), (json): Omit<Published, 'state'> | null => {
    // Not kept: the document takes ten times the room of its bytes.
    const document: unknown = JSON.parse(json)
    if (typeof document !== 'object' || document === null || Array.isArray(document)) return null
    const yaml = readFileSync(join(dataDir, names.yaml))
    const hash = (document as Record<string, unknown>)['x-contract-hash']
    return { json: Buffer.from(json), yaml: async () => yaml, etag: etagOf(json), hash }
  })
  const sourceHash = rereading(source, sha256)
  return () => {
    const found = contract()
    if (found === null) return null
    const yours = sourceHash()
    return { ...found, state: yours !== null && yours !== found.hash ? 'outdated' : 'ok' }
  }
}

/** What an installation adds to the contract; `mark` is another one after every change of it. */
export interface Additions {
  mark: string
  /** The document itself when there is nothing to add. */
  to<D extends object>(document: D): D
}

/**
 * The published contract with the additions of this installation, made again when either changes. The YAML is written from
 * the same document, once it is asked for and in a thread of its own.
 */
export function servedWith(
  published: () => Published | null,
  additions: () => Promise<Additions>,
): () => Promise<Published | null> {
  let known: { of: string; made: Published } | null = null
  return async () => {
    const base = published()
    if (base === null) return null
    const { mark, to } = await additions()
    const of = `${base.etag} ${mark}`
    if (known?.of !== of) known = { of, made: extended(base, to) }
    return { ...known.made, state: base.state }
  }
}

function extended(base: Published, to: Additions['to']): Published {
  const document = JSON.parse(base.json.toString()) as object
  const extended = to(document)
  if (extended === document) return base
  const json = JSON.stringify(extended)
  let yaml: Promise<Buffer> | undefined
  return {
    ...base,
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

/** What `read` makes of a file, made again when the file has changed; null, and tried again, while it cannot be read. */
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
