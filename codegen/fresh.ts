// Remembers what the last run of `npm run regenerate` made from which inputs, so that a change of
// prose does not render the types again. `--check` does not use this memory.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isObject } from './read.ts'

/** The keys whose values are data of the API, in which `description` is not prose. */
const dataKeys = new Set(['example', 'examples', 'default', 'const', 'enum', 'value'])

/** Returns a copy of the contract with empty descriptions and summaries. */
export function withoutProse<T>(part: T): T {
  if (Array.isArray(part)) return part.map(withoutProse) as T
  if (!isObject(part)) return part
  const entries = Object.entries(part).map(([key, value]) => {
    if (dataKeys.has(key)) return [key, value] as const
    const isProse = (key === 'description' || key === 'summary') && typeof value === 'string'
    return [key, isProse ? '' : withoutProse(value)] as const
  })
  return Object.fromEntries(entries) as T
}

const digest = (...texts: string[]): string => {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest('hex')
}

export interface Memory {
  /**
   * Returns whether the last run made `name` from inputs with this digest. `text` is the generated
   * file as it is now; a check makes no file.
   */
  knows: (name: string, inputs: string, text?: string | undefined) => boolean
  learn: (name: string, inputs: string, text?: string) => void
  save: () => void
}

/** Returns the memory in `dist` of the checkout. */
export function openMemory(root: string): Memory {
  const file = join(root, 'dist/.regenerated.json')
  const known = new Map<string, string>(existsSync(file) ? Object.entries(JSON.parse(readFileSync(file, 'utf8'))) : [])
  return {
    knows: (name, inputs, text = '') => known.get(name) === digest(inputs, text),
    learn: (name, inputs, text = '') => void known.set(name, digest(inputs, text)),
    save: () => {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, JSON.stringify(Object.fromEntries(known)))
    },
  }
}

/** Returns a digest of everything in the contract but prose. */
export const digestOfShape = (document: object): string => digest(JSON.stringify(withoutProse(document)))

/** Returns a digest of the files and of all files in the folders. */
export function digestOfFiles(root: string, ...paths: string[]): string {
  const files = paths
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) => {
      if (!statSync(join(root, path)).isDirectory()) return [path]
      const names = readdirSync(join(root, path), { recursive: true, withFileTypes: true })
      return names.flatMap((each) => (each.isFile() ? [join(each.parentPath, each.name)] : [])).sort()
    })
  return digest(...files.flatMap((path) => [path, readFileSync(resolve(root, path), 'utf8')]))
}
