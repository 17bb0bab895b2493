// Creates a "world" through the API: a server with a record of every kind, and a valid request for
// every operation. New operations of the contract are included automatically.
import { type ServerOptions, startServer, type TestServer } from '../support/app.ts'
import { type Known, seeded, unique, validBody } from '../support/given.ts'
import { bodySchema, creators, entityOf, fact, facts, parametersOf, requiredOf } from '../support/schema.ts'
import { type Answer, type Request, send } from './send.ts'
import { stage } from './stages.ts'

export { type Answer, type Request, schemaFindings, send, short } from './send.ts'
export { changesNothing, stored } from './stored.ts'

export interface World {
  server: TestServer
  /** Linked records, for reading and changing. */
  main: Record<string, number>
  /** Records that no other record refers to, for deleting and linking. */
  spare: Record<string, number>
  /** Records with only required values, which others can refer to. */
  plain: Record<string, number>
  /** Deleted records, for restoring. */
  gone: Record<string, number>
  /** Records in the trash, for restoring and deleting permanently. */
  trashed: Record<string, number>
  /** Parts of a linked record, such as its attachments, by the last segment of their path. */
  parts: Record<string, number>
  /** The values of path parameters that are not ids. */
  texts: Record<string, string>
  /**
   * Records in a state that an operation needs and that only background work produces (stages.ts).
   */
  at: Partial<Record<string, Record<string, number>>>
  /** Records that could not be created, each with the reply. */
  missing: string[]
}

/**
 * Creates a world with a linked and a spare record of every resource, and every link of the
 * contract.
 */
export async function startWorld({ at, ...options }: ServerOptions & { at?: string } = {}): Promise<World> {
  const server = await startServer(options)
  if (at !== undefined) server.clock.set(at)
  const world: World = {
    server,
    main: {},
    spare: {},
    plain: {},
    gone: {},
    trashed: {},
    parts: {},
    // This path parameter is not a record.
    texts: { operationId: 'listLeads' },
    at: {},
    missing: [],
  }
  let waiting = [...creators]
  // Creates first the records whose references in the example exist, then those whose required
  // references exist, then the others.
  for (const named of [wants, needs, () => []]) {
    for (let before = -1; waiting.length !== before; ) {
      before = waiting.length
      const later: typeof waiting = []
      for (const [entity, id] of waiting) {
        if (named(id).every((each) => world.spare[each] !== undefined || !creators.has(each)))
          await populate(world, entity, id)
        else later.push([entity, id])
      }
      waiting = later
    }
  }
  for (const id of links) {
    const attached = await attempt(world, id, { ...request(world, id), body: validBody(id, knownIn(world.main)) })
    if (attached?.status !== fact(id).status) world.missing.push(`${id}: ${attached?.text}`)
    // Attaching copies the file. The copy is used from now on.
    else if (attached.status === 201) world.main[fact(id).path.split('/').at(-1) ?? ''] = attached.body.data.id
  }
  for (const [entity, id] of creators)
    if (facts.some(([, { path }]) => isRestoreOf(id, path))) await bury(world, entity, id)
  await findParts(world)
  await stage(world)
  await server.admin.get('/account')
  server.events()
  await server.keep()
  return world
}

/** Returns the entities that the body of an operation must refer to. */
const needs = (id: string): string[] => requiredOf(bodySchema(id) ?? {}).flatMap((name) => entityOf(name) ?? [])

/** Returns the entities that the example of an operation refers to. */
const wants = (id: string): string[] =>
  Object.keys((validBody(id, () => 1) as object | undefined) ?? {}).flatMap((name) => entityOf(name) ?? [])

async function populate(world: World, entity: string, id: string): Promise<void> {
  const make = async (kind: 'main' | 'spare' | 'plain', part: 'example' | 'required'): Promise<void> => {
    const known = knownIn({ ...world.main, ...world.plain })
    const made = await attempt(world, id, { method: 'POST', url: fact(id).path, body: validBody(id, known, part) })
    if (made?.status === 201) world[kind][entity] = made.body.data.id
    // Some records need more values than the schema requires.
    else if (made?.status === 422 && part === 'required') await make(kind, 'example')
    else world.missing.push(`${id}: ${made?.status} ${made?.text}`)
  }
  if ([...creators.values()].some((each) => needs(each).includes(entity))) await make('plain', 'required')
  await make('main', 'example')
  await make('spare', 'required')
}

const isRestoreOf = (creator: string, path: string): boolean => path === `${fact(creator).path}/{id}/restore`

/** Creates a record and deletes it, permanently if there is a trash. */
async function bury(world: World, entity: string, creator: string): Promise<void> {
  const { path } = fact(creator)
  const remover = facts.find(([, { method, path: each }]) => method === 'delete' && each === `${path}/{id}`)?.[0] ?? ''
  const body = validBody(creator, knownIn({ ...world.main, ...world.plain }))
  const made = await attempt(world, creator, { method: 'POST', url: path, body })
  const url = `${path}/${made?.body.data?.id}`
  for (let patience = 2; patience > 0 && (await world.server.admin.get(`/${url}`)).status === 200; patience--)
    await attempt(world, remover, { method: 'DELETE', url })
  world.gone[entity] = made?.body.data?.id
  if (!facts.some(([, each]) => each.path === `${path}/{id}/untrash`)) return
  const thrown = await attempt(world, creator, { method: 'POST', url: path, body })
  await attempt(world, remover, { method: 'DELETE', url: `${path}/${thrown?.body?.data?.id}` })
  world.trashed[entity] = thrown?.body?.data?.id
}

/** Finds the ids of the first parts in the replies of the linked records. */
async function findParts(world: World): Promise<void> {
  for (const { path } of facts.map(([, each]) => each)) {
    const [part, record, parts = ''] = /^(.*\/\{id\})\/(\w+)\/\{\w+\}/.exec(path) ?? []
    const shows = facts.find(([, each]) => each.method === 'get' && each.path === record)?.[0]
    if (part === undefined || shows === undefined || world.parts[part] !== undefined) continue
    const shown = await world.server.admin.get(`/${urlOf(world, shows)}`)
    const id = shown.body?.data?.[parts]?.[0]?.id
    if (typeof id === 'number') world.parts[part] = id
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

const parentsOfRemovals = new Set(
  facts.flatMap(([, { method, path }]) => (method === 'delete' ? [/^(.+)\/\{\w+\}$/.exec(path)?.[1]] : [])),
)

/** The operations that link two records: a POST with a matching DELETE below its path. */
export const links: readonly string[] = facts
  .filter(([, { method, path }]) => method === 'post' && path.includes('{') && parentsOfRemovals.has(path))
  .map(([id]) => id)

/** Returns a valid request for an operation. With `required`, the body has only required values. */
export function request(
  world: World,
  id: string,
  part: 'example' | 'required' = 'example',
): Request & { body?: Record<string, unknown> } {
  const { method, path } = fact(id)
  const takesAway = method === 'delete' && /\/\{id\}$/.test(path)
  const inMass = /\/mass-\w+$/.test(path)
  const isAnew = takesAway || inMass || part === 'required' || links.includes(id)
  const ids = knownIn(isAnew ? { ...world.spare, ...world.plain } : { ...world.main, ...world.plain })
  const body = validBody(id, ids, part)
  const collection = path.split('/').at(-2) ?? ''
  if (inMass && body) body.ids = [world.spare[collection] ?? ids(collection) ?? 0]
  const { merged } = world.at[id] ?? {}
  if (merged !== undefined && body) Object.assign(body, 'ids' in body ? { ids: [merged] } : { id: merged })
  return {
    method: method.toUpperCase(),
    url: urlOf(world, id, placeOf(world, path, takesAway)),
    ...(body && { body }),
  }
}

function placeOf(world: World, path: string, takesAway: boolean): Record<string, number> {
  if (path.endsWith('/restore')) return world.gone
  if (path.endsWith('/untrash')) return world.trashed
  return takesAway ? { ...world.spare, ...world.trashed } : world.main
}

/** Returns the path of an operation with ids. `replace` overrides the text of a parameter. */
export function urlOf(
  world: World,
  id: string,
  ids: Record<string, number> = world.main,
  replace: Record<string, string> = {},
): string {
  let before = ''
  let place = ''
  return fact(id)
    .path.split('/')
    .map((part) => {
      const [, name, suffix = ''] = /^\{(\w+)\}(\.\w+)?$/.exec(part) ?? []
      const entity = name === undefined ? undefined : name === 'id' ? before : (entityOf(name) ?? before)
      before = part
      place += place === '' && part === '' ? '' : `/${part}`
      if (name === undefined) return part
      // An upsert creates a record with a new id.
      if (name === 'source' || name === 'external_id')
        return replace[name] ?? (name === 'source' ? 'hubspot' : `id${unique()}`)
      const own = ids === world.main ? world.parts[place] : undefined
      const [choice] = parametersOf(id, 'path').flatMap((each) => (each.name === name ? (each.schema.enum ?? []) : []))
      const [text, found] = [replace[name] ?? world.texts[name], world.at[id]?.[entity ?? ''] ?? ids[entity ?? '']]
      return `${text ?? choice ?? own ?? found ?? seeded(entity ?? '') ?? 999_999}${suffix}`
    })
    .join('/')
}

/**
 * Runs an operation so that it changes data. If the example equals the current state, first sets
 * another state.
 */
export async function change(world: World, id: string): Promise<Answer> {
  const wanted = request(world, id)
  // Uses a new token, because signing out also revokes the tokens that the token has created.
  if (id === 'logout') wanted.token = (await world.server.as(1)).token
  const answer = await send(world, id, wanted)
  const changes = world.server.seen
    .filter(({ name }) => name.endsWith('.after'))
    .map(({ changed = [] }) => changed.length)
  const body = opposite(wanted.body ?? {})
  if (!/update/i.test(id) || changes.some((count) => count > 0)) return answer
  await world.server.rewind()
  return send(world, id, { ...wanted, body })
}

function opposite(body: Record<string, unknown>): Record<string, unknown> {
  const other = (value: unknown): unknown =>
    typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : value
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, other(value)]))
}
