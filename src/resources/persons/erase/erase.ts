// Erases a person, in one transaction: first the records through the rules of a deletion, then
// every table of personal-data.ts. The events that this writes have no personal data either.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../../db/long-lists.ts'
import type { Schema } from '../../../contract/types.ts'
import { unblock } from '../../../jobs/leases.ts'
import type { Context } from '../../../kernel/context.ts'
import { chunks } from '../../../kernel/history/archive.ts'
import { runDeleteHooks } from '../../../kernel/history/delete-hooks.ts'
import { withoutVisibility } from '../../../kernel/query/visibility.ts'
import { yieldToEventLoop } from '../../../kernel/runtime/cooperative.ts'
import { type InTransaction, write } from '../../../kernel/write/write.ts'
import { persons } from '../resource.ts'
import { columnsOf, type PersonalTable, type PersonGroup, personalTables } from './personal-data.ts'
import { onlyFacts, redactionOf, redactTable, setColumns } from './redact.ts'
import { type Scope, scopeOfPerson } from './scope.ts'
import { eraseBulkAnswers, eraseStoredReplies } from './stored-replies.ts'
import { suppressIdentities } from './suppression.ts'

type Place = Schema<'PersonErasurePlace'>

export interface Erased {
  removed: Place[]
  kept: Schema<'PersonErasureKept'>[]
  /** The hashes of the files whose bytes go. */
  sha256s: string[]
  /** The tables with rows that changed. */
  tables: string[]
}

/** Erases the person. `erasureId` names the receipt, for the suppression. */
export async function erase(ctx: InTransaction, id: number, erasureId: number, keepsSent: boolean): Promise<Erased> {
  const scope = await scopeOfPerson(ctx, id, keepsSent)
  const counts = new Map<string, Place>()
  const count = (place: string, action: Place['action'], entries: number): void => {
    if (entries === 0) return
    const at = `${place} ${action}`
    counts.set(at, { place, action, count: (counts.get(at)?.count ?? 0) + entries })
  }
  const files = ctx.db
    .selectFrom('files')
    .select('sha256')
    .where('id', 'in', [0, ...scope.ids.files])
  const sha256s = [...new Set((await files.execute()).map((row) => row.sha256))]
  const emitted = ctx.unit.after.length
  const before = { id, user_id: await ownerOf(ctx, id), ...changedIds(scope) }
  await write(ctx, 'contacts.person.erase', { entity: 'persons', input: {}, id, before }, async (ctx) => {
    await removePerson(ctx, scope, count)
    await eraseRows(ctx, scope, count)
    await redactTexts(ctx, scope, count)
    count('idempotency_keys', 'redacted', await eraseStoredReplies(ctx, scope))
    count('bulk_answers', 'redacted', await eraseBulkAnswers(ctx, scope))
    return { id, entity: null }
  })
  hideFromListeners(ctx, emitted, scope)
  for (const [entity, group] of entities) for (const each of scope.ids[group]) ctx.unit.stale.push({ entity, id: each })
  const suppressed = await suppressIdentities(ctx, erasureId, scope)
  const removed = [...counts.values()].sort((one, other) => (one.place < other.place ? -1 : 1))
  const tables = [...new Set([...removed.map(({ place }) => place), 'search_index'])]
  return { removed, kept: keptOf(scope, suppressed), sha256s, tables }
}

/** The groups whose records have events, archives and search documents, by entity. */
const entities: readonly (readonly [string, PersonGroup])[] = [
  ['persons', 'persons'],
  ['leads', 'leads'],
  ['quotes', 'quotes'],
  ['quotes', 'keptQuotes'],
  ['activities', 'activities'],
  ['activities', 'sharedActivities'],
  ['emails', 'emails'],
  ['emails', 'sharedEmails'],
]

async function ownerOf({ db }: Context, id: number): Promise<number | null> {
  const row = await db.selectFrom('persons').select('user_id').where('id', '=', id).executeTakeFirst()
  return row?.user_id ?? null
}

/** Returns the ids of the records that change, for subscribers that have copies of them. */
const changedIds = ({ ids }: Scope) => ({
  lead_ids: ids.leads,
  quote_ids: [...ids.quotes, ...ids.keptQuotes],
  activity_ids: [...ids.activities, ...ids.sharedActivities],
  email_ids: [...ids.emails, ...ids.sharedEmails],
})

type Count = (place: string, action: Place['action'], entries: number) => void

/**
 * Deletes the person, with the rules of a deletion: references in custom attributes of other
 * records go, too. A person with quotes keeps its row, because a quote cannot be without one.
 */
async function removePerson(ctx: InTransaction, { id, exists }: Scope, count: Count): Promise<void> {
  await ctx.db.updateTable('leads').set({ person_id: null }).where('person_id', '=', id).execute()
  // Otherwise the deletion would delete activities that the person shares with participants.
  await ctx.db.deleteFrom('person_activities').where('person_id', '=', id).execute()
  if (!exists) return
  const own = withoutVisibility(ctx)
  const quotes = ctx.db.selectFrom('quotes').select('id').where('person_id', '=', id)
  if ((await quotes.executeTakeFirst()) === undefined) {
    await persons.remove(own, id)
    count('persons', 'deleted', 1)
  } else {
    await runDeleteHooks(own, 'persons', id)
    count('persons', 'redacted', 1)
  }
}

/** Deletes or empties the rows that belong to the person. */
async function eraseRows(ctx: InTransaction, scope: Scope, count: Count): Promise<void> {
  for (const [table, rules] of personalTables) {
    const mine = rowsOf(rules, scope)
    if (rules.unlink !== undefined && rules.shared) {
      const column = sql.ref(rules.unlink)
      await sql`update ${sql.table(table)} set ${column} = null where ${column} = ${scope.id}`.execute(ctx.db)
    }
    if (mine === null || rules.erase === undefined) continue
    if (rules.erase === 'facts') count(table, 'redacted', await reduceEvents(ctx, mine))
    else if (rules.erase === 'delete') {
      const done = await sql`delete from ${sql.table(table)} where ${mine}`.execute(ctx.db)
      count(table, 'deleted', Number(done.numAffectedRows ?? 0))
    } else {
      const entries = await setColumns(ctx, table, rules.erase, mine)
      if (table !== 'persons') count(table, 'redacted', entries)
    }
    await yieldToEventLoop()
  }
}

/** Returns the condition for the rows that belong to the person alone; null for no rows. */
export function rowsOf({ of = [], about }: PersonalTable, scope: Scope): RawBuilder<SqlBool> | null {
  const ways = of.flatMap(([column, group]) => {
    const values = group === 'addresses' ? scope.addresses : scope.ids[group]
    return values.length === 0 ? [] : [isIn(sql.ref(column), [...values])]
  })
  if (about) {
    const [type, id] = about
    for (const [entity, group] of [...entities, ['sends', 'sends'] as const, ['files', 'files'] as const]) {
      if (group === 'sharedActivities' || group === 'sharedEmails' || scope.ids[group].length === 0) continue
      ways.push(sql<SqlBool>`(${sql.ref(type)} = ${entity} and ${isIn(sql.ref(id), scope.ids[group])})`)
    }
  }
  return ways.length === 0 ? null : sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

/** Empties events of persons, activities and e-mails. Events of leads and quotes keep numbers. */
async function reduceEvents(ctx: Context, mine: RawBuilder<SqlBool>): Promise<number> {
  const events = ctx.db.selectFrom('events').select(['id', 'entity_type', 'name', 'before', 'after']).where(mine)
  const rows = await events.execute()
  for (const part of chunks(rows, 100)) {
    for (const { id, entity_type, name, before, after } of part) {
      const keeps = entity_type === 'leads' || entity_type === 'quotes'
      const snapshots = keeps ? { before: onlyFacts(before), after: onlyFacts(after) } : { before: null, after: null }
      // The owner stays, because a deletion says who could see the record.
      if (name.startsWith('contacts.person.erase')) continue
      await ctx.db
        .updateTable('events')
        .set({ ...snapshots, ip: null })
        .where('id', '=', id)
        .execute()
    }
    await yieldToEventLoop()
  }
  return rows.length
}

/** Replaces the texts that name the person in all tables. */
async function redactTexts(ctx: InTransaction, scope: Scope, count: Count): Promise<void> {
  const anywhere = redactionOf(scope.names)
  const near = redactionOf(scope.nearNames)
  for (const [table, rules] of personalTables) {
    if (anywhere) {
      const entries = await redactTable(ctx, table, rules, anywhere, exceptKept(rules, scope))
      count(table, rules.named === 'delete' ? 'deleted' : 'redacted', entries)
    }
    const shared = near === null ? null : sharedRowsOf(rules, scope)
    if (near && shared) count(table, 'redacted', await redactTable(ctx, table, rules, near, shared))
    await yieldToEventLoop()
  }
  const blocked = ctx.db.selectFrom('jobs').select('sequence').distinct().where('state', '=', 'blocked')
  for (const { sequence } of await blocked.execute()) await unblock(ctx, sequence)
}

/** Leaves out the quotes that are kept with their customer. */
const exceptKept = ({ shared }: PersonalTable, { ids }: Scope): RawBuilder<SqlBool> | null =>
  shared?.[1] === 'keptQuotes' && ids.keptQuotes.length > 0
    ? sql<SqlBool>`not (${isIn(sql.ref(shared[0]), ids.keptQuotes)})`
    : null

function sharedRowsOf({ shared, about, texts }: PersonalTable, { ids }: Scope): RawBuilder<SqlBool> | null {
  if (columnsOf(texts).length === 0) return null
  const ways: RawBuilder<SqlBool>[] = []
  if (shared && shared[1] !== 'keptQuotes' && shared[1] !== 'addresses' && ids[shared[1]].length > 0)
    ways.push(isIn(sql.ref(shared[0]), ids[shared[1]]))
  if (about)
    for (const [entity, group] of entities)
      if ((group === 'sharedActivities' || group === 'sharedEmails') && ids[group].length > 0)
        ways.push(sql<SqlBool>`(${sql.ref(about[0])} = ${entity} and ${isIn(sql.ref(about[1]), ids[group])})`)
  return ways.length === 0 ? null : sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

/** Reduces the events that listeners get after the commit to the ids of their records. */
function hideFromListeners(ctx: InTransaction, from: number, scope: Scope): void {
  for (const event of ctx.unit.after.slice(from)) {
    const isMine = entities.some(
      ([entity, group]) => entity === event.entityType && scope.ids[group].includes(event.entityId ?? 0),
    )
    if (!isMine || event.name.startsWith('contacts.person.erase')) continue
    event.entity = { id: event.entityId }
    delete event.before
  }
}

function keptOf({ id, ids }: Scope, suppressed: number): Erased['kept'] {
  const found: [string, number, string][] = [
    ['leads', ids.leads.length, 'Leads stay for reports, without the person and without texts.'],
    ['quotes', ids.quotes.length, 'Quotes stay for reports, without the customer and without texts.'],
    ['quotes', ids.keptQuotes.length, 'A quote that was sent is a business document: it keeps its customer.'],
    [
      'persons',
      ids.quotes.length + ids.keptQuotes.length > 0 ? 1 : 0,
      `Its quotes refer to the record ${id}, which is empty.`,
    ],
    ['activities', ids.sharedActivities.length, 'They concern others, too. The person is replaced in their texts.'],
    ['emails', ids.sharedEmails.length, 'They concern others, too. The person is replaced in their texts.'],
    ['erased_identities', suppressed, 'Keyed hashes keep the addresses from coming back, until they are lifted.'],
  ]
  return found.flatMap(([place, count, reason]) => (count > 0 ? [{ place, count, reason }] : []))
}
