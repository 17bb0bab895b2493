// Finds the changes of a record's references that no event of its own tells: the deletion of
// another record sets a reference to null, and its restore sets it again (backreferences.ts). They
// are replayed from the events of both: a record may be named by too many for an event each.
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import type { Resource } from '../resource/definition.ts'
import { relationsOf } from './archive.ts'

export interface SilentChange {
  key: string
  /** Whether the reference was set again, by a restore. */
  isBack: boolean
}

interface Reference {
  column: string
  other: Pick<Resource<unknown, never>, 'entity' | 'events' | 'merges'>
}

interface Step {
  id: number
  is: 'deleted' | 'back' | 'own'
  /** The id of the deleted or restored record, or the reference after an event of the record. */
  to: number | null
  isAlive: boolean
}

/** Returns the silent changes of a record, by the id of the event that caused them. */
export async function silentChanges(ctx: Context, entity: string, id: number): Promise<Map<number, SilentChange[]>> {
  const found = new Map<number, SilentChange[]>()
  const resource = ctx.services.resources.get(entity)
  if (!resource) return found
  for (const reference of await referencesOf(ctx, resource.table))
    for (const [event, isBack] of replay(await stepsOf(ctx, resource, id, reference)))
      found.set(event, [...(found.get(event) ?? []), { key: reference.column, isBack }])
  return found
}

async function referencesOf(ctx: Context, table: string): Promise<Reference[]> {
  const { foreignKeys } = await relationsOf(ctx)
  const others = new Map([...ctx.services.resources.values()].map((each) => [each.table as string, each]))
  return foreignKeys.flatMap((key) => {
    const other = key.table === table && key.onDelete === 'set null' ? others.get(key.parent) : undefined
    return other ? [{ column: key.column, other }] : []
  })
}

/** Returns what happened to a reference and to the records that it named, in order. */
async function stepsOf(
  ctx: Context,
  { entity, events }: Pick<Resource<unknown, never>, 'entity' | 'events'>,
  id: number,
  { column, other }: Reference,
): Promise<Step[]> {
  const { dialect } = ctx.services.store
  const own = await ctx.db
    .selectFrom('events')
    .select(['id', 'name'])
    .select(sql<string | null>`${dialect.jsonText('events.after', column)}`.as('to'))
    .where('entity_type', '=', entity)
    .where('entity_id', '=', id)
    .where('name', 'in', [`${events.create}.after`, `${events.update}.after`, `${events.delete}.after`])
    .where(({ or, eb }) =>
      or([
        eb('before', 'is', null),
        eb('after', 'is', null),
        sql<SqlBool>`cast(events.changed as text) like ${`%"${column}"%`}`,
      ]),
    )
    .execute()
  const steps = own.map(({ id, name, to }): Step => {
    return { id, is: 'own', to: to === null ? null : Number(to), isAlive: name !== `${events.delete}.after` }
  })
  const named = [...new Set(steps.flatMap(({ to }) => to ?? []))]
  if (named.length === 0) return []
  const others = await ctx.db
    .selectFrom('events')
    .select(['id', 'entity_id', 'restored'])
    .where('entity_type', '=', other.entity)
    .where('entity_id', 'in', named)
    .where(({ or, and, eb }) =>
      or([
        eb('name', '=', `${other.events.delete}.after`),
        and([eb('name', '=', `${other.events.create}.after`), eb('restored', '=', 1)]),
      ]),
    )
    .execute()
  // The deletion of a merged record empties no reference: each went to the record of the merge.
  const merged = new Set<number | null>()
  for (const each of other.merges ? named : []) if ((await other.merges?.into(ctx, each)) !== null) merged.add(each)
  for (const { id, entity_id, restored } of others.filter((each) => !merged.has(each.entity_id)))
    steps.push({ id, is: restored === 1 ? 'back' : 'deleted', to: entity_id, isAlive: true })
  return steps.sort((one, other) => one.id - other.id)
}

/** Returns the events that changed the reference silently, each with whether it set it again. */
function replay(steps: readonly Step[]): [event: number, isBack: boolean][] {
  const found: [number, boolean][] = []
  // The deleted records whose restore sets the reference, while it is null.
  const owed = new Set<number>()
  let isAlive = false
  let is: number | null = null
  let last: number | null = null
  for (const step of steps) {
    if (step.is === 'own') {
      // A reference to a record that was deleted after this one waits for that record.
      if (step.isAlive && !isAlive && step.to === null && last !== null) owed.add(last)
      if (!step.isAlive) last = is
      isAlive = step.isAlive
      is = step.to
    } else if (step.is === 'deleted' && step.to !== null && is === step.to) {
      found.push([step.id, false])
      owed.add(step.to)
      is = null
    } else if (step.is === 'back' && step.to !== null && owed.delete(step.to) && isAlive && is === null) {
      found.push([step.id, true])
      is = step.to
    }
  }
  return found
}
