// A world with one of everything, made through the API once per file, and a valid request for any operation in it. Nothing
// here names an operation: what the contract gains is walked without an edit.
import { createHash } from 'node:crypto'
import type { InjectOptions } from 'fastify'
import { createReplyChecker } from '../../src/contract/replies.ts'
import { contract, type ServerOptions, startServer, type TestServer } from '../support/app.ts'
import { type Known, seeded, validBody } from '../support/given.ts'
import { bodySchema, creators, document, entityOf, fact, facts, requiredOf } from '../support/schema.ts'

export interface World {
  server: TestServer
  /** Linked records: what is shown and changed. */
  main: Record<string, number>
  /** Records nothing refers to: what is deleted, or linked anew. */
  spare: Record<string, number>
  /** What could not be made, and the answer that says why. */
  missing: string[]
}

export interface Request {
  method: string
  url: string
  body?: unknown
  headers?: Record<string, string>
  token?: string | null
}

export interface Answer {
  status: number
  headers: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: replies of every operation pass through here
  body: any
  text: string
}

/** Sends one request. Throws when the answer breaks the contract: a status it does not list, a problem it does not describe. */
export async function send(world: World, id: string, request: Request): Promise<Answer> {
  const { method, url, body, headers = {}, token = world.server.admin.token } = request
  const sent = {
    accept: 'application/json',
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const {
    statusCode: status,
    headers: received,
    body: text,
  } = await world.server.inject({
    method: method as NonNullable<InjectOptions['method']>,
    url,
    headers: sent,
    ...(payload !== undefined && { payload }),
  })
  const isJson = String(received['content-type'] ?? '').includes('json') && text !== ''
  const answer = {
    status,
    headers: received as Record<string, string>,
    body: isJson ? JSON.parse(text) : undefined,
    text,
  }
  const breaches = breachesOf(id, method, answer)
  if (breaches.length > 0)
    throw new Error(`${method} ${url} ${short(body)}\n${breaches.join('\n')}\n${text.slice(0, 600)}`)
  return answer
}

const everywhere = [204, 405]

function breachesOf(id: string, method: string, { status, headers, body }: Answer): string[] {
  const breaches: string[] = []
  if (status >= 500) breaches.push(`answered ${status}: bad input is the caller's mistake, never ours.`)
  else if (!fact(id).statuses.includes(status) && !everywhere.includes(status))
    breaches.push(`answered ${status}, which the contract does not list for ${id}.`)
  if (headers['x-request-id'] === undefined) breaches.push('has no X-Request-Id header.')
  if (status >= 400 && body !== undefined && method !== 'HEAD') breaches.push(...problemFindings(body))
  return breaches
}

/** Schemas by name, closed: a key the contract lacks is a finding. */
const schemas = createReplyChecker(
  {
    ...document,
    paths: Object.fromEntries(
      Object.keys(document.components?.schemas ?? {}).map((name) => [
        `/${name}`,
        {
          get: {
            responses: {
              200: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
            },
          },
        },
      ]),
    ),
  },
  { closed: true },
)

export const schemaFindings = (name: string, value: unknown): string[] =>
  schemas.findings({ path: `/${name}`, method: 'get' }, 200, 'application/json', value)
const problemFindings = (body: unknown): string[] => schemaFindings('Problem', body)

export const short = (value: unknown): string => {
  const text = (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replaceAll(/(.)\1{20,}/g, '$1…')
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** A world with one linked and one spare record of every resource, and every link of the contract. */
export async function startWorld(options: ServerOptions = {}): Promise<World> {
  const server = await startServer(options)
  const world: World = { server, main: {}, spare: {}, missing: [] }
  let waiting = [...creators]
  for (let patience = waiting.length + 1; waiting.length > 0 && patience > 0; patience--) {
    const last = patience === 1
    const later: typeof waiting = []
    for (const [entity, id] of waiting) {
      if (last || needs(id).every((each) => world.spare[each] !== undefined || each === 'stages'))
        await populate(world, entity, id)
      else later.push([entity, id])
    }
    if (later.length === waiting.length) patience = Math.min(patience, 2)
    waiting = later
  }
  for (const id of links()) {
    const attached = await attempt(world, id, { ...request(world, id), body: validBody(id, knownIn(world.main)) })
    if (attached?.status !== 200) world.missing.push(`${id}: ${attached?.text}`)
  }
  await server.admin.get('/account')
  server.events()
  server.keep()
  return world
}

/** Records an operation's body must name. */
const needs = (id: string): string[] => requiredOf(bodySchema(id) ?? {}).flatMap((name) => entityOf(name) ?? [])

async function populate(world: World, entity: string, id: string): Promise<void> {
  const known = knownIn({ ...world.spare, ...world.main })
  const make = (part: 'example' | 'required'): Promise<Answer | undefined> =>
    attempt(world, id, { method: 'POST', url: fact(id).path, body: validBody(id, known, part) })
  const made = { main: await make('example'), spare: await make('required') }
  // Some kinds of a record need more than the schema can say.
  if (made.spare?.status === 422) made.spare = await make('example')
  for (const kind of ['main', 'spare'] as const) {
    if (made[kind]?.status === 201) world[kind][entity] = made[kind].body.data.id
    else world.missing.push(`${id}: ${made[kind]?.status} ${made[kind]?.text}`)
  }
}

async function attempt(world: World, id: string, wanted: Request): Promise<Answer | undefined> {
  try {
    return await send(world, id, wanted)
  } catch (error) {
    world.missing.push(`${id}: ${String(error).split('\n').slice(0, 2).join(' ')}`)
    return undefined
  }
}

const knownIn =
  (ids: Record<string, number>): Known =>
  (entity) =>
    ids[entity] ?? seeded(entity)

/** Operations that link two records: POST where the link below can be taken away again. */
export const links = (): string[] =>
  facts
    .filter(
      ([, { method, path }]) =>
        method === 'post' &&
        facts.some(
          ([, other]) =>
            other.method === 'delete' &&
            new RegExp(`^${escape(path)}/\\{\\w+\\}$`).test(other.path) &&
            path.includes('{'),
        ),
    )
    .map(([id]) => id)

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** A request the operation answers with success. `required`: with nothing in the body but what it must have. */
export function request(
  world: World,
  id: string,
  part: 'example' | 'required' = 'example',
): Request & { body?: Record<string, unknown> } {
  const { method, path } = fact(id)
  const takesAway = method === 'delete' && /\/\{id\}$/.test(path)
  const inMass = /\/mass-\w+$/.test(path)
  const ids = knownIn(takesAway || inMass || part === 'required' || links().includes(id) ? world.spare : world.main)
  const body = validBody(id, ids, part)
  const collection = path.split('/').at(-2) ?? ''
  if (inMass && body) body.indices = [ids(collection) ?? 0]
  return {
    method: method.toUpperCase(),
    url: urlOf(world, id, takesAway ? world.spare : world.main),
    ...(body && { body }),
  }
}

/** The path of an operation with ids in it; `replace` gives a parameter another text. */
export function urlOf(
  world: World,
  id: string,
  ids: Record<string, number> = world.main,
  replace: Record<string, string> = {},
): string {
  let before = ''
  return fact(id)
    .path.split('/')
    .map((part) => {
      const name = /^\{(\w+)\}$/.exec(part)?.[1]
      const entity = name === undefined ? undefined : name === 'id' ? before : entityOf(name)
      before = part
      return name === undefined ? part : (replace[name] ?? String(ids[entity ?? ''] ?? seeded(entity ?? '') ?? 999_999))
    })
    .join('/')
}

/** Everything that is stored, as one text to compare. */
export const stored = (world: World): string => createHash('sha256').update(world.server.store.image()).digest('hex')

/** Runs requests that must change nothing: no byte of the database, no event. */
export async function changesNothing(world: World, work: () => Promise<void>): Promise<string[]> {
  const before = stored(world)
  world.server.events()
  await work()
  const events = world.server.events()
  const findings = events.length > 0 ? [`fired ${events.join(', ')}`] : []
  if (stored(world) === before) return findings
  await world.server.rewind()
  return [...findings, 'wrote to the database']
}

export { contract }
