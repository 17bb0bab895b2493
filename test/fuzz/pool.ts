// Collects values from replies: ids of existing and deleted records, versions, links and tokens.
// Keeps the latest values, so that later requests use the created records.
import type { World } from '../contract/support.ts'
import { seeded } from '../support/given.ts'
import { fact } from '../support/schema.ts'
import type { Random } from './random.ts'

const kept = 30

export interface Pool {
  ids: Map<string, number[]>
  /** The ids of records that were deleted or never existed. */
  dead: Map<string, number[]>
  /**
   * The paths of dependent records by their path in the contract. For example, only a tag of a lead
   * can be detached from it.
   */
  parts: Map<string, string[]>
  etags: string[]
  /** Paths with queries of pages, downloads and locations. */
  links: string[]
  texts: Map<string, string[]>
  /** Tokens of users that the fuzzer created. */
  tokens: string[]
}

const push = <T>(list: T[], value: T, most = kept): void => {
  if (!list.includes(value)) list.push(value)
  if (list.length > most) list.shift()
}

const listOf = <T>(map: Map<string, T[]>, key: string): T[] => {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}

export function poolOf(world: World): Pool {
  const pool: Pool = {
    ids: new Map(),
    dead: new Map(),
    parts: new Map(),
    etags: ['"1"'],
    links: [],
    texts: new Map(),
    tokens: [],
  }
  for (const part of [world.main, world.spare, world.plain, ...Object.values(world.at)])
    for (const [entity, id] of Object.entries(part ?? {})) push(listOf(pool.ids, entity), id)
  for (const part of [world.gone, world.trashed])
    for (const [entity, id] of Object.entries(part)) push(listOf(pool.dead, entity), id)
  for (const entity of ['users', 'roles', 'sources', 'types', 'pipelines', 'stages'])
    push(listOf(pool.ids, entity), seeded(entity) ?? 1)
  for (const [name, text] of Object.entries(world.texts)) push(listOf(pool.texts, name), text)
  return pool
}

export function idOf(pool: Pool, random: Random, entity: string, isGone = false): number {
  const dead = pool.dead.get(entity) ?? []
  if (dead.length > 0 && random.chance(isGone ? 0.7 : 0.04)) return random.pick(dead)
  const known = pool.ids.get(entity) ?? []
  if (known.length === 0 || random.chance(0.04)) return random.pick([1, 2, 999_999_999, 0, -1, 2 ** 53])
  // The newest records are most likely to exist.
  return random.chance(0.5) ? random.pick(known.slice(-4)) : random.pick(known)
}

const lastWord = (operation: string): string =>
  fact(operation)
    .path.split('/')
    .filter((part) => !part.startsWith('{'))
    .at(-1) ?? ''

/** Moves the id of the record at this path to `dead`. */
export function forget(pool: Pool, operation: string, path: string): void {
  const { path: pattern } = fact(operation)
  if (pattern.split('{').length !== 2 || !pattern.endsWith('/{id}')) return
  const [entity, id] = [lastWord(operation), Number(path.split('/').at(-1))]
  const known = pool.ids.get(entity) ?? []
  if (known.length > 1 && known.includes(id)) known.splice(known.indexOf(id), 1)
  if (Number.isSafeInteger(id)) push(listOf(pool.dead, entity), id)
}

/**
 * Collects the values of a reply that later requests can use. `path` is the path of the request.
 */
export function learn(
  pool: Pool,
  operation: string,
  path: string,
  headers: Record<string, unknown>,
  body: unknown,
): void {
  if (typeof headers.etag === 'string') push(pool.etags, headers.etag)
  if (typeof headers.location === 'string') link(pool, headers.location)
  if (typeof body !== 'object' || body === null) return
  const { data, links } = body as { data?: unknown; links?: Record<string, unknown> }
  for (const each of Object.values(links ?? {})) if (typeof each === 'string') link(pool, each)
  for (const each of [data].flat().slice(0, 20)) {
    if (typeof each !== 'object' || each === null) continue
    const { id, form_id, token, stages } = each as Record<string, unknown>
    if (typeof id === 'number') push(listOf(pool.ids, lastWord(operation)), id)
    const { path: pattern } = fact(operation)
    if (typeof id === 'number' && /\{id\}\/[\w-]+$/.test(pattern)) push(listOf(pool.parts, pattern), `${path}/${id}`)
    if (typeof form_id === 'string') push(listOf(pool.texts, 'form_id'), form_id)
    if (typeof token === 'string' && token.includes('|')) push(pool.tokens, token, 5)
    for (const stage of Array.isArray(stages) ? stages : []) push(listOf(pool.ids, 'stages'), stage.id)
    for (const value of Object.values(each)) {
      const url = typeof value === 'object' && value !== null && 'url' in value ? value.url : undefined
      if (typeof url === 'string') link(pool, url)
    }
  }
}

function link(pool: Pool, url: string): void {
  // Removes the host, which the fuzzer may have sent.
  const path = url.replace(/^https?:\/\/[^/]*/, '')
  if (path.startsWith('/')) push(pool.links, path)
}
