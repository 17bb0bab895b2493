// Generates a request: any operation of the contract by any caller, valid or broken in its path,
// query, headers or body, or an unknown path. Depends only on the random generator and the pool.
import type { TestServer } from '../support/app.ts'
import { bodySchema, fact, operationAt } from '../support/schema.ts'
import { damaged, formPayload, jsonPayload, type Payload } from './bodies.ts'
import { type Header, headersOf } from './headers.ts'
import { atTheDoor, pathOf, queryOf } from './places.ts'
import { idOf, type Pool } from './pool.ts'
import type { Random } from './random.ts'
import { broken, valid } from './values.ts'

export interface Wanted {
  /** The intended operation, or null. */
  operation: string | null
  method: string
  url: string
  headers: Header[]
  bytes: Buffer | undefined
  who: Who
  /** How the request is sent: with `inject`, through a socket, or damaged through a socket. */
  transport: 'inject' | 'socket' | 'abused'
}

export type Who = 'admin' | 'individual' | 'group' | 'narrow' | 'other' | 'anonymous' | 'garbage'

const people: Record<Who, number> = {
  admin: 60,
  individual: 12,
  group: 8,
  narrow: 6,
  other: 3,
  anonymous: 6,
  garbage: 2,
}

/** How broken a request is. */
export type Mood = 'plausible' | 'broken' | 'wild' | 'door' | 'link'

const usualMoods: Record<Mood, number> = { plausible: 42, broken: 42, wild: 8, door: 5, link: 3 }

/** Returns a request. `moods` are the weights of the moods. */
export function requestOf(
  random: Random,
  pool: Pool,
  server: TestServer,
  among: readonly string[],
  moods: Record<Mood, number> = usualMoods,
): Wanted {
  const mood = random.weighted(moods)
  const id = random.pick(among)
  const transport = random.weighted({ inject: 965, socket: 15, abused: 20 })
  const who = random.weighted(people)
  if (mood === 'link' && pool.links.length > 0) {
    const url = random.pick(pool.links)
    const operation = operationAt('GET', url.split('?')[0] ?? '')?.id ?? null
    return {
      operation,
      method: 'GET',
      url,
      headers: headersOf(random, pool, operation, false),
      bytes: undefined,
      who,
      transport,
    }
  }
  const isWild = mood === 'wild'
  const share = { plausible: 0.02, broken: 0.3, wild: 0.8, door: 0.1, link: 0 }[mood]
  const { method } = fact(id)
  const path = pathOf(random, pool, id, share / 3)
  const query = queryOf(random, pool, server, id, path, share)
  const payload = payloadOf(random, pool, id, mood === 'plausible' ? 0 : isWild ? 3 : 1)
  const headers = headersOf(random, pool, id, random.chance(share / 2))
  if (payload?.type != null) headers.push(['content-type', payload.type])
  if (payload?.encoding !== undefined) headers.push(['content-encoding', payload.encoding])
  const wanted: Wanted = {
    operation: id,
    method: method.toUpperCase(),
    url: `${path}${query}`,
    headers,
    bytes: payload?.bytes,
    who,
    transport,
  }
  return mood === 'door' ? atTheDoor(random, wanted) : wanted
}

function payloadOf(random: Random, pool: Pool, id: string, wrongs: number): Payload | undefined {
  const schema = bodySchema(id)
  const ids = (entity: string): number => idOf(pool, random, entity)
  if (schema === undefined)
    return wrongs > 0 && random.chance(0.1) ? damaged(random, jsonPayload(random, {})) : undefined
  const { consumes, path } = fact(id)
  let value = valid(random, schema, ids)
  const collection = path.split('/').at(-2) ?? ''
  if (/\/mass-\w+$/.test(path) && typeof value === 'object' && value !== null)
    value = { ...value, ids: Array.from({ length: random.whole(1, 5) }, () => ids(collection)) }
  for (let count = wrongs === 0 ? 0 : random.whole(1, wrongs); count > 0 && random.chance(0.8); count--)
    value = broken(random, schema, value, ids)
  const type = random.pick(consumes)
  const payload =
    type === 'application/json' || (random.chance(0.05) && wrongs > 0)
      ? jsonPayload(random, value)
      : formPayload(random, value, schema, type === 'application/x-www-form-urlencoded')
  return wrongs > 0 && random.chance(0.12) ? damaged(random, payload) : payload
}
