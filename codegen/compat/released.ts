// Reads and renders the served contract of the last release, test/contract/released.json. The gate
// measures by it which change would break a client.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ContractDocument, isObject, type Reference, resolve } from '../read.ts'

export const releasedFile = 'test/contract/released.json'
export const breakingFile = 'test/contract/breaking.txt'

export const readReleased = (root: string): ContractDocument =>
  JSON.parse(readFileSync(join(root, releasedFile), 'utf8')) as ContractDocument

const prose = new Set(['description', 'summary', 'x-hint', 'x-any-user', 'x-no-event', 'externalDocs', 'links'])
/** The keys whose values are maps from names, which may be words of `prose`. */
const maps = new Set(['properties', 'patternProperties', 'schemas', 'parameters', 'paths', 'responses', 'webhooks'])
const data = new Set(['example', 'examples', 'default', 'enum', 'const'])

/**
 * Returns the contract without prose, and without the examples of replies. The examples of requests
 * stay, because the walkers send them.
 */
export function releasedForm(document: ContractDocument): ContractDocument {
  const isRequired = (header: unknown): object =>
    resolve(document, header as Reference & { required?: boolean })?.required ? { required: true } : {}
  const lean = (value: unknown, isReply: boolean, isMap: boolean): unknown => {
    if (Array.isArray(value)) return value.map((each) => lean(each, isReply, false))
    if (!isObject(value)) return value
    const kept = Object.entries(value).flatMap(([key, each]): [string, unknown][] => {
      if (isMap) return [[key, lean(each, isReply, false)]]
      if (prose.has(key) || (isReply && (key === 'example' || key === 'examples'))) return []
      if (data.has(key)) return [[key, each]]
      if (key === 'headers' && isObject(each)) return [[key, mapValues(each, isRequired)]]
      return [[key, lean(each, isReply || key === 'responses', maps.has(key))]]
    })
    return Object.fromEntries(kept)
  }
  const { 'x-generated': _mark, tags: _tags, ...rest } = document
  return lean(rest, false, false) as ContractDocument
}

const mapValues = (part: Record<string, unknown>, map: (value: unknown) => unknown): object =>
  Object.fromEntries(Object.entries(part).map(([name, value]) => [name, map(value)]))

/** Returns the text of released.json, with a line for each path and component. */
export function renderReleased(document: ContractDocument): string {
  const indented = (value: unknown, depth: number): string =>
    depth > 0 && isObject(value) && Object.keys(value).length > 0
      ? `{\n${Object.entries(value)
          .map(([key, each]) => `${JSON.stringify(key)}:${indented(each, depth - 1)}`)
          .join(',\n')}\n}`
      : JSON.stringify(value)
  return `${indented(releasedForm(document), 3)}\n`
}
