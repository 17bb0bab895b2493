// The visibility rules as a table of scoped records, and the users to test
// them: the caller, a group mate and an outsider.
import { sql } from 'kysely'
import { facts } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { token } from './matrix.ts'
import type { World } from './support.ts'

export type View = 'individual' | 'group' | 'global'
export type Owner = 'caller' | 'mate' | 'outsider' | 'none'
export const views: readonly View[] = ['individual', 'group', 'global']
export const owners: readonly Owner[] = ['caller', 'mate', 'outsider', 'none']

/** Returns whether a view shows records of an owner. */
export const sees = (view: View, owner: Owner): boolean =>
  view === 'global' || owner === 'caller' || (view === 'group' && owner === 'mate')

interface Scope {
  table: string
  /** Whether a view shows records of an owner. The default is the function `sees` above. */
  sees?: (view: View, owner: Owner) => boolean
  /** Whether every caller may read the records, so that only changes depend on visibility. */
  isOpenToRead?: boolean
  /** Whether every record has an owner. */
  isAlwaysOwned?: boolean
}

/** The scoped types, by the segment before `{id}` in a path. */
export const scopes: Record<string, Scope> = {
  leads: { table: 'leads' },
  persons: { table: 'persons' },
  organizations: { table: 'organizations' },
  quotes: { table: 'quotes' },
  activities: { table: 'activities' },
  emails: { table: 'emails' },
  // All users see all tags. Without the global view, a user can change only own tags.
  tags: { table: 'tags', sees: (view, owner) => view === 'global' || owner === 'caller', isOpenToRead: true },
  // Without groups to share it with, only the owner sees a view, and who may do everything.
  views: { table: 'saved_views', sees: (view, owner) => view === 'global' || owner === 'caller' },
  // Callers who see the record of a file see the file. A file without a record is visible only to
  // its uploader, who can delete it.
  files: { table: 'files' },
  tokens: { table: 'tokens', isAlwaysOwned: true },
  // Sessions of other users appear only in events.
  sessions: { table: 'sessions', isAlwaysOwned: true, sees: (_view, owner) => owner === 'caller' },
}

/** The record types whose visibility depends on their owner. */
export const records = ['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'] as const

export interface People {
  caller: number
  mate: number
  outsider: number
  /** A file of the caller without a record. */
  upload: number
  /** Sets the view of the caller and returns a token. */
  seeing(view: View): Promise<string>
}

const known = new WeakMap<World, Promise<People>>()

/**
 * Creates the users of a world once. The caller has every permission, so that only visibility
 * restricts it.
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

/** Returns the visibility rule for the record of an operation. */
export function seesFor(id: string, entity: string): (view: View, owner: Owner) => boolean {
  if (id === 'deleteFile') return (_view, owner) => owner === 'caller'
  return scopes[entity]?.sees ?? sees
}

/** Changes the owner of all records and of the snapshots of deleted records. */
export async function give({ server: { store }, main, spare }: World, owner: number | null): Promise<void> {
  for (const [entity, { table, isAlwaysOwned }] of Object.entries(scopes)) {
    const given = store.db.updateTable(table as 'leads').set({ user_id: isAlwaysOwned ? (owner ?? 1) : owner })
    // Tokens and sessions that callers use keep their owner.
    await (isAlwaysOwned ? given.where('id', 'in', [main[entity] ?? 0, spare[entity] ?? 0]) : given).execute()
  }
  await store.db
    .updateTable('events')
    .set({ owner_id: owner, before: ownedBy('before', owner), after: ownedBy('after', owner) })
    .execute()
  await store.db
    .updateTable('archives')
    .set({ owner_id: owner, before: ownedBy('before', owner) })
    .execute()
}

/** Returns the SQL for a snapshot with another owner. */
const ownedBy = (column: 'before' | 'after', owner: number | null) =>
  sql<string | null>`case when json_type(${sql.ref(column)}, '$.user_id') is null then ${sql.ref(column)}
    else json_set(${sql.ref(column)}, '$.user_id', ${owner}) end`

/** Changes the owner of some records. */
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

/** Replaces users in bodies by the caller, because narrower views hide other users. */
export function asHadBy(world: World, { caller, upload }: People): World {
  const own = (ids: Record<string, number>) => ({ ...ids, users: caller })
  return { ...world, main: own(world.main), spare: { ...own(world.spare), upload }, plain: own(world.plain) }
}

/** Returns the scoped type of the record in an operation's path, or undefined. */
export function scopeOf(id: string): string | undefined {
  const fact = facts.find(([name]) => name === id)?.[1]
  const entity = /\/([\w-]+)\/\{id\}/.exec(fact?.path ?? '')?.[1] ?? ''
  const scope = fact && !fact.public && Object.hasOwn(scopes, entity) ? scopes[entity] : undefined
  if (!scope || (scope.isOpenToRead && (fact?.method === 'get' || fact?.path.endsWith('/history')))) return undefined
  return entity
}
