// The visibility rules of DOMAIN 7.4 and 16 as a table: the scoped records, and the callers who see
// them. And people to test them: the caller, a group mate, an outsider; records without an owner.
import { sql } from 'kysely'
import { facts } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { token } from './matrix.ts'
import type { World } from './support.ts'

export type View = 'individual' | 'group' | 'global'
export type Owner = 'caller' | 'mate' | 'outsider' | 'none'
export const views: readonly View[] = ['individual', 'group', 'global']
export const owners: readonly Owner[] = ['caller', 'mate', 'outsider', 'none']

/** DOMAIN 7.4: the owners whose records a view shows. */
export const sees = (view: View, owner: Owner): boolean =>
  view === 'global' || owner === 'caller' || (view === 'group' && owner === 'mate')

interface Scope {
  table: string
  /** The callers who see a record of that owner; by default as in 7.4. */
  sees?: (view: View, owner: Owner) => boolean
  /** Whether only changes depend on visibility: every caller may read. */
  isOpenToRead?: boolean
  /** Whether every record has an owner. */
  isAlwaysOwned?: boolean
}

/** By the word before `{id}` in a path. Types that are missing here are not scoped. */
export const scopes: Record<string, Scope> = {
  leads: { table: 'leads' },
  persons: { table: 'persons' },
  organizations: { table: 'organizations' },
  quotes: { table: 'quotes' },
  activities: { table: 'activities' },
  emails: { table: 'emails' },
  // Every user sees all tags; a user without the global view changes only the own ones.
  tags: { table: 'tags', sees: (view, owner) => view === 'global' || owner === 'caller', isOpenToRead: true },
  // A file is seen with its record. An upload without a record is its uploader's, whatever the
  // view, and can be deleted.
  files: { table: 'files' },
  tokens: { table: 'tokens', isAlwaysOwned: true },
  // Sessions of others appear only in events.
  sessions: { table: 'sessions', isAlwaysOwned: true, sees: (_view, owner) => owner === 'caller' },
}

/** The business records of DOMAIN 7.4, with an owner and all links. */
export const records = ['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'] as const

export interface People {
  caller: number
  mate: number
  outsider: number
  /** A file of the caller that belongs to no record. */
  upload: number
  /** A token of the caller, who has this view now. */
  seeing(view: View): Promise<string>
}

const known = new WeakMap<World, Promise<People>>()

/**
 * The caller's role holds every permission, so that only visibility restricts it. Created once for
 * all parts.
 */
export function people(world: World): Promise<People> {
  const found = known.get(world) ?? make(world)
  known.set(world, found)
  return found
}

async function make(world: World): Promise<People> {
  const { server } = world
  const { id: caller } = await addUser(server, 'Carla', { view: 'individual', group: 'Matrix' })
  const { id: mate } = await addUser(server, 'Mats', { group: 'Matrix', view: 'individual' })
  const { id: outsider } = await addUser(server, 'Olga', { group: 'Elsewhere' })
  const text = await token(world, { userId: caller })
  const { id: _id, ...like } = await server.store.db.selectFrom('files').selectAll().executeTakeFirstOrThrow()
  const { id: upload } = await server.store.db
    .insertInto('files')
    .values({ ...like, name: 'matrix', content_type: 'image/png', user_id: caller, owner_type: null, owner_id: null })
    .returning('id')
    .executeTakeFirstOrThrow()
  return {
    caller,
    mate,
    outsider,
    upload,
    seeing: async (view) => {
      await server.store.db.updateTable('users').set({ view_permission: view }).where('id', '=', caller).execute()
      return text
    },
  }
}

/** The callers who see the record of an operation. */
export function seesFor(id: string, entity: string): (view: View, owner: Owner) => boolean {
  if (id === 'deleteFile') return (_view, owner) => owner === 'caller'
  return scopes[entity]?.sees ?? sees
}

/** Gives all records to one owner, deleted ones too, by their last known state. */
export async function give({ server: { store }, main, spare }: World, owner: number | null): Promise<void> {
  for (const [entity, { table, isAlwaysOwned }] of Object.entries(scopes)) {
    const given = store.db.updateTable(table as 'leads').set({ user_id: isAlwaysOwned ? (owner ?? 1) : owner })
    // Those that callers use stay theirs.
    await (isAlwaysOwned ? given.where('id', 'in', [main[entity] ?? 0, spare[entity] ?? 0]) : given).execute()
  }
  await store.db
    .updateTable('events')
    .set({ owner_id: owner, before: ownedBy('before', owner), after: ownedBy('after', owner) })
    .execute()
}

/** A snapshot of an event with another owner, where it has one. */
const ownedBy = (column: 'before' | 'after', owner: number | null) =>
  sql<string | null>`case when json_type(${sql.ref(column)}, '$.user_id') is null then ${sql.ref(column)}
    else json_set(${sql.ref(column)}, '$.user_id', ${owner}) end`

/** Gives some records to another owner. */
export async function giveSome(
  { server: { store } }: World,
  ids: Record<string, number>,
  owner: number | null,
): Promise<void> {
  for (const [entity, id] of Object.entries(ids)) {
    const table = entity === 'tokens' ? undefined : scopes[entity]?.table
    if (table)
      await store.db
        .updateTable(table as 'leads')
        .set({ user_id: owner })
        .where('id', '=', id)
        .execute()
  }
}

/** Users in bodies become the caller, because no view of the test shows other users. */
export function asHadBy(world: World, { caller, upload }: People): World {
  const own = (ids: Record<string, number>) => ({ ...ids, users: caller })
  return { ...world, main: own(world.main), spare: { ...own(world.spare), upload }, plain: own(world.plain) }
}

/** The record in an operation's path whose visibility counts; undefined without one. */
export function scopeOf(id: string): string | undefined {
  const fact = facts.find(([name]) => name === id)?.[1]
  const entity = /\/([\w-]+)\/\{id\}/.exec(fact?.path ?? '')?.[1] ?? ''
  const scope = fact && !fact.public && Object.hasOwn(scopes, entity) ? scopes[entity] : undefined
  if (!scope || (scope.isOpenToRead && (fact?.method === 'get' || fact?.path.endsWith('/history')))) return undefined
  return entity
}
