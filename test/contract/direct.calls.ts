// Calls as the route hands them on, made from chance and the contract: what fits an operation, and what is wrong with its path, query,
// headers or body. Made twice from the same numbers they are the same, which is what direct.test.ts compares by.
import { Readable } from 'node:stream'
import type { Body } from '../../src/contract/input/body.ts'
import { operations } from '../../src/contract/operations.gen.ts'
import type { OperationFact, OperationId } from '../../src/contract/types.ts'
import { damaged, escaped, formPayload, jsonPayload, type Payload } from '../fuzz/bodies.ts'
import { numerals } from '../fuzz/ends.ts'
import { headersOf } from '../fuzz/headers.ts'
import { hostileText, oddKey } from '../fuzz/hostile.ts'
import { pathOf } from '../fuzz/places.ts'
import type { Pool } from '../fuzz/pool.ts'
import type { Random } from '../fuzz/random.ts'
import { broken, valid, write } from '../fuzz/values.ts'
import { validBody } from '../support/given.ts'
import { bodySchema, fact, facts, parametersOf, sample, typesOf } from '../support/schema.ts'
import { type Breakage, badTexts, breakagesOf } from './breakages.ts'

/** Where a stub of the pipeline throws. */
export const fates = ['none', 'authenticate', 'welcome', 'authorize', 'receive', 'locate', 'handle'] as const

export interface Sent {
  id: OperationId
  path: string
  query: string
  headers: Record<string, string>
  body: Buffer | undefined
  /** What reading the stream of a form gives; in place of a body. */
  form: Body | undefined
  fate: (typeof fates)[number]
  isStrict: boolean
}

const words = facts.flatMap(([, { path }]) => path.split('/'))
const names = facts.flatMap(([id]) => parametersOf(id as OperationId, 'path').filter(isText))
const pool: Pool = {
  ids: new Map(words.map((word) => [word, [1, 2, 7, 41, 2 ** 31]])),
  dead: new Map(),
  parts: new Map(),
  etags: ['"1"', '"2"'],
  links: [],
  texts: new Map(names.map(({ name }) => [name, ['plain', 'a%20b', 'caf%C3%A9', 'a%2Fb', 'a.b-c_d~', '7', '"']])),
  tokens: [],
}

function isText({ schema }: { schema: Parameters<typeof typesOf>[0] }): boolean {
  return typesOf(schema).includes('string') && schema.enum === undefined
}

export function sentTo(random: Random, id: OperationId): Sent {
  const { consumes, longestForm: maxFormLength } = fact(id)
  const isForm = maxFormLength !== null && consumes.includes('multipart/form-data') && random.chance(0.6)
  const payload = isForm ? undefined : payloadOf(random, id)
  const type = isForm ? 'multipart/form-data; boundary=x' : payload?.type
  const headers = Object.fromEntries(headersOf(random, pool, id, random.chance(0.15)))
  return {
    id,
    path: decodable(near(random, pathOf(random, pool, id, random.chance(0.2) ? 0.6 : 0))),
    query: queryOf(random, id),
    headers: typeof type === 'string' ? { ...headers, 'content-type': type } : headers,
    body: payload?.bytes,
    form: isForm ? formOf(random, id) : undefined,
    fate: random.chance(0.8) ? 'none' : random.pick(fates),
    isStrict: random.chance(0.85),
  }
}

/** Of a path that cannot be decoded the router makes a 400; it is not handed on. */
function decodable(path: string): string {
  try {
    decodeURIComponent(path)
    return path
  } catch {
    return path.replaceAll(/%(?![0-7][\dA-F])[^/]*/gi, '')
  }
}

/** Another path that the router takes for the same, or a call that it would not hand on. */
function near(random: Random, path: string): string {
  if (random.chance(0.94)) return path
  const kind = random.pick(['fragment', 'slash', 'inside', 'letter', 'part', 'blank'])
  if (kind === 'fragment') return `${path}${random.pick(['#', '#x', '#/1', '/#', '#?id=1'])}`
  if (kind === 'slash') return `${path}${random.pick(['/', '//'])}`
  if (kind === 'blank') return `${path}${random.pick([' ', '\u00a0', '\t'])}`
  const parts = path.split('/')
  const at = random.whole(1, parts.length - 1)
  const part = parts[at] ?? ''
  if (kind === 'inside') parts[at] = ''
  if (kind === 'letter')
    parts[at] = random.pick([part.toUpperCase(), `${part}x`, `%${part.charCodeAt(0).toString(16)}${part.slice(1)}`])
  if (kind === 'part') parts.splice(at, random.whole(0, 1), random.pick(['x', '1', '', '.']))
  return parts.join('/')
}

const oddKeys = ['__proto__', 'constructor', 'page', 'id', 'id[gte]', 'nope', 'a[b][c]', '__proto__[x]', '', '[]', 'ID']

function queryOf(random: Random, id: OperationId): string {
  const known = parametersOf(id, 'query')
  const share = random.pick([0, 0, 0.1, 0.5])
  const chosen = known.filter(({ required }) => required && !random.chance(share / 3))
  for (let count = known.length > 0 ? random.few(6) : 0; count > 0; count--) chosen.push(random.pick(known))
  const pairs = chosen.map(({ name, schema }) => {
    const part = typesOf(schema).includes('object') && random.chance(0.9) ? `[${partKey(random)}]` : ''
    const key = `${name}${part || (random.chance(share / 3) ? random.pick(['[]', '[gte]', '[x]', ' ', '[__proto__]']) : '')}`
    const text =
      part !== '' && random.chance(0.7) ? random.pick(['a', '1', 'true', '', 'a,b']) : textOf(random, schema, share)
    return `${random.chance(0.5) ? escaped(random, key) : key}=${escaped(random, text)}`
  })
  if (pairs.length > 0 && random.chance(0.1)) pairs.push(random.pick(pairs))
  if (random.chance(0.05))
    pairs.push(`${random.pick(oddKeys)}=${escaped(random, hostileText(random, 30).slice(0, 1_000))}`)
  if (random.chance(0.03)) pairs.push(random.pick(['', '=', '%', 'x', '=x', '?', '&', 'a=%ff']))
  return pairs.join('&')
}

const partKey = (random: Random): string =>
  random.chance(0.5) ? random.pick(['industry', 'score[gte]', 'a[b]', 'toString', '']) : oddKey(random).slice(0, 300)

function textOf(random: Random, schema: Parameters<typeof badTexts>[0], share: number): string {
  if (random.chance(share))
    return random.pick([
      random.pick([...badTexts(schema), '']),
      random.pick(numerals),
      hostileText(random, 60).slice(0, 1_000),
    ])
  if (random.chance(0.2)) return String(sample(schema))
  const value = typesOf(schema).includes('boolean')
    ? random.pick(['true', 'false', '1', '0'])
    : valid(random, schema, () => 1)
  const texts = [value].flat().map((each) => (typeof each === 'object' ? JSON.stringify(each) : String(each)))
  // A comma in a value of a list.
  if (random.chance(0.1)) texts.push('a\\,b')
  return texts.join(',').slice(0, 1_000)
}

const breakages = new Map<OperationId, Breakage[]>()

function breakagesOfBody(id: OperationId): Breakage[] {
  const known = breakages.get(id) ?? [
    ...breakagesOf(
      bodySchema(id),
      validBody(id, () => 1),
    ),
  ]
  breakages.set(id, known)
  return known
}

function madeFor(random: Random, id: OperationId): unknown {
  const schema = bodySchema(id)
  if (random.chance(0.35)) return validBody(id, () => 1, random.pick(['example', 'required'] as const))
  const wrongs = breakagesOfBody(id)
  if (wrongs.length > 0 && random.chance(0.4)) return random.pick(wrongs).value
  let value = valid(random, schema, () => 1)
  for (let count = random.few(4); count > 0; count--) value = broken(random, schema, value, () => 1)
  return value
}

function payloadOf(random: Random, id: OperationId): Payload | undefined {
  const { consumes } = fact(id)
  if (consumes.length === 0) return random.chance(0.05) ? jsonPayload(random, { a: 1 }) : undefined
  if (random.chance(0.05)) return undefined
  const plain = 'application/x-www-form-urlencoded'
  const isPlain = (consumes as readonly string[]).includes(plain) && random.chance(0.4)
  const value = madeFor(random, id)
  const made = isPlain ? formPayload(random, value, bodySchema(id), true) : jsonPayload(random, value)
  return random.chance(0.12) ? damaged(random, made) : made
}

/** As the pipeline would read it; a number of it may have been rounded, and a text be a file's. */
function formOf(random: Random, id: OperationId): Body {
  let value: unknown = {}
  try {
    value = JSON.parse(write(madeFor(random, id)))
  } catch {}
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const [name = 'x'] = isObject ? Object.keys(value as object) : []
  return {
    value: isObject ? value : { [name]: value },
    inexact: random.chance(0.05) ? [[name]] : [],
    ...(random.chance(0.05) && { found: [[name, 'Must not be sent more than once.']] }),
  }
}

/** A call of its own each time: both ways change what they are given. */
export function callOf({ id, path, query, headers, body, form }: Sent) {
  return {
    operation: id,
    fact: operations[id] as OperationFact,
    method: fact(id).method.toUpperCase(),
    path,
    headers: { ...headers },
    query,
    ageMs: 0,
    body: body && Buffer.from(body),
    stream: form && Readable.from([]),
    request: { address: '127.0.0.1', id: 'r', protocol: 'http', host: 'localhost', caller: null, passage: null },
  }
}
