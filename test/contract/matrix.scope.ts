// What DOMAIN 7.4 and 16 say of sight, in a table: which records are scoped, and by whom they are seen. And people to try it: the caller,
// a mate of a group, an outsider; records of nobody.
import { sql } from 'kysely'
import { facts } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { token } from './matrix.ts'
import type { World } from './support.ts'

export type View = 'individual' | 'group' | 'global'
export type Owner = 'caller' | 'mate' | 'outsider' | 'nobody'
export const views: readonly View[] = ['individual', 'group', 'global']
export const owners: readonly Owner[] = ['caller', 'mate', 'outsider', 'nobody']

/** DOMAIN 7.4: which owners' records a view shows. */
export const sees = (view: View, owner: Owner): boolean =>
  view === 'global' || owner === 'caller' || (view === 'group' && owner === 'mate')

interface Scope {
  table: string
  /** Who sees a record of that owner; like the records of 7.4 when left out. */
  sees?: (view: View, owner: Owner) => boolean
  /** Whether only what changes one asks for sight: all may look. */
  isOpenToRead?: boolean
  /** Whether there is none of nobody. */
  isAlwaysOwned?: boolean
}

/** By the word before `{id}` in a path. What is not here is not scoped. */
export const scopes: Record<string, Scope> = {
  leads: { table: 'leads' },
  persons: { table: 'persons' },
  organizations: { table: 'organizations' },
  quotes: { table: 'quotes' },
  activities: { table: 'activities' },
  emails: { table: 'emails' },
  // Everybody knows all tags; who does not see everything changes the own ones only.
  tags: { table: 'tags', sees: (view, owner) => view === 'global' || owner === 'caller', isOpenToRead: true },
  // Of a record, seen with it. An upload that belongs to none yet is its uploader's, whatever the view: that is what can be deleted.
  files: { table: 'files' },
  tokens: { table: 'tokens', isAlwaysOwned: true },
  // Of others they are only told of, in events.
  sessions: { table: 'sessions', isAlwaysOwned: true, sees: (_view, owner) => owner === 'caller' },
}

/** Those of DOMAIN 7.4 that are records of the business, with an owner and all links. */
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

/** The caller's role holds every key, so that nothing but sight is in the way. Made once for all parts. */
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

/** Who sees the record that an operation is about. */
export function seesFor(id: string, entity: string): (view: View, owner: Owner) => boolean {
  if (id === 'deleteFile') return (_view, owner) => owner === 'caller'
  return scopes[entity]?.sees ?? sees
}

/** Makes all records those of one owner: also deleted ones, by what is known of how they were last. */
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

/** Makes some records those of another owner. */
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

/** Users that bodies name are the caller, who sees no others in every view. */
export function asHadBy(world: World, { caller, upload }: People): World {
  const own = (ids: Record<string, number>) => ({ ...ids, users: caller })
  return { ...world, main: own(world.main), spare: { ...own(world.spare), upload }, plain: own(world.plain) }
}

/** The record of an operation's path that sight is asked about; undefined when none is. */
export function scopeOf(id: string): string | undefined {
  const fact = facts.find(([name]) => name === id)?.[1]
  const entity = /\/([\w-]+)\/\{id\}/.exec(fact?.path ?? '')?.[1] ?? ''
  const scope = fact && !fact.public && Object.hasOwn(scopes, entity) ? scopes[entity] : undefined
  if (!scope || (scope.isOpenToRead && (fact?.method === 'get' || fact?.path.endsWith('/history')))) return undefined
  return entity
}
