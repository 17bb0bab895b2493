// Finds the records of a person and the texts that name the person: what an export contains and an
// erasure removes. Records of all owners count, and so do records that were deleted.
import { sql } from 'kysely'
import { isIn } from '../../../../db/long-lists.ts'
import { phoneKeys } from '../../../../db/schema/phone-numbers.ts'
import type { DB } from '../../../../db/tables.gen.ts'
import type { Context } from '../../../kernel/context.ts'
import { addressKey, fold } from '../../../kernel/values/format.ts'
import { textKey } from '../../../kernel/values/names.ts'
import { personsWith } from '../consent.ts'
import { splitEmails } from './emails-of-person.ts'
import { type PersonGroup, personGroups } from './personal-data.ts'

export interface Scope {
  readonly id: number
  readonly ids: Readonly<Record<PersonGroup, number[]>>
  /** The e-mail addresses of the person that no other person and no user has. */
  readonly addresses: readonly string[]
  readonly externalIds: readonly string[]
  /** Texts that name only this person: addresses, numbers, and a full name without a namesake. */
  readonly names: readonly string[]
  /** Texts that name the person in its own records: also a name that others have. */
  readonly nearNames: readonly string[]
  /** Whether the row of the person still exists. */
  readonly exists: boolean
}

const query = async (ctx: Context, found: ReturnType<typeof sql<{ id: number }>>): Promise<number[]> =>
  (await found.execute(ctx.db)).rows.map(({ id }) => Number(id))

/** Returns the scope of the person. `keepsSent`: the customer of sent quotes is kept. */
export async function scopeOfPerson(ctx: Context, id: number, keepsSent: boolean): Promise<Scope> {
  const ids = Object.fromEntries(personGroups.map((group) => [group, [] as number[]])) as Scope['ids']
  // Persons that were merged into this one have events and archives of their own.
  const merged = ctx.db.selectFrom('person_merges').select('merged_id').where('person_id', '=', id)
  ids.persons.push(id, ...(await merged.orderBy('merged_id').execute()).map((row) => row.merged_id))
  const known = await factsOf(ctx, id, ids.persons)
  ids.leads.push(...(await referring(ctx, 'leads', id)))
  for (const each of ids.persons) ids.leads.push(...(await deleted(ctx, 'leads', `"person_id":${each}`)))
  const quotes = ctx.db.selectFrom('quotes').select(['id', 'sent_at']).where('person_id', '=', id).orderBy('id')
  for (const quote of await quotes.execute())
    (keepsSent && quote.sent_at !== null ? ids.keptQuotes : ids.quotes).push(quote.id)
  for (const each of ids.persons) ids.quotes.push(...(await deleted(ctx, 'quotes', `"person_id":${each}`)))
  await findActivities(ctx, id, ids)
  const { addresses } = known
  const mails = await splitEmails(ctx, { id, leads: ids.leads, addresses: known.addresses })
  ids.emails.push(...mails.own)
  ids.sharedEmails.push(...mails.shared)
  ids.sends.push(...(await findSends(ctx, id, addresses)))
  await findImports(ctx, ids, [...addresses, ...known.numbers])
  ids.files.push(...(await findFiles(ctx, ids)))
  return { id, ids, ...(await namesOf(ctx, id, known)), externalIds: [...known.externalIds], exists: known.exists }
}

const referring = (ctx: Context, table: 'leads' | 'quotes', id: number): Promise<number[]> =>
  query(ctx, sql<{ id: number }>`select id from ${sql.table(table)} where person_id = ${id} order by id`)

/** Returns the deleted records of a type whose archived rows have the JSON text. */
async function deleted(ctx: Context, table: 'leads' | 'quotes' | 'activities', json: string) {
  const pattern = `%${json.replaceAll(/[\\%_]/g, '\\$&')}`
  const rows = sql`cast(archives.rows as text)`
  const ends = /\d$/.test(json) ? [',%', '}%'] : ['%']
  const matches = ends.map((end) => sql`${rows} like ${pattern + end} escape '\\'`)
  return query(
    ctx,
    sql<{ id: number }>`select distinct entity_id as id from archives where entity_type = ${table}
      and (${sql.join(matches, sql` or `)})
      and not exists (select 1 from ${sql.table(table)} as present where present.id = archives.entity_id)`,
  )
}

/**
 * An activity belongs to the person alone when its links and participants are this person, its
 * leads and quotes, and users.
 */
async function findActivities(ctx: Context, id: number, ids: Scope['ids']): Promise<void> {
  const leads = ids.leads.length > 0 ? isIn(sql.ref('lead_id'), ids.leads) : sql`1 = 0`
  const ofPerson = [...ids.quotes, ...ids.keptQuotes]
  const quotes = ofPerson.length > 0 ? isIn(sql.ref('quote_id'), ofPerson) : sql`1 = 0`
  const mine = await query(
    ctx,
    sql<{ id: number }>`select activity_id as id from person_activities where person_id = ${id}
      union select activity_id from activity_participants where person_id = ${id}
      union select activity_id from lead_activities where ${leads}
      union select activity_id from quote_activities where ${quotes}`,
  )
  const others =
    mine.length === 0
      ? []
      : await query(
          ctx,
          sql<{ id: number }>`select activity_id as id from (
            select activity_id from person_activities where person_id <> ${id}
            union select activity_id from activity_participants where person_id <> ${id}
            union select activity_id from lead_activities where not (${leads})
            union select activity_id from quote_activities where not (${quotes})
            union select activity_id from organization_activities
            union select activity_id from product_activities
            union select activity_id from warehouse_activities) as elsewhere where ${isIn(sql.ref('activity_id'), mine)}`,
        )
  const shared = new Set(others)
  for (const each of mine) (shared.has(each) ? ids.sharedActivities : ids.activities).push(each)
  for (const each of ids.persons) ids.activities.push(...(await deleted(ctx, 'activities', `"person_id":${each}`)))
  for (const lead of ids.leads) ids.activities.push(...(await deleted(ctx, 'activities', `"lead_id":${lead}`)))
}

async function findSends(ctx: Context, id: number, addresses: readonly string[]): Promise<number[]> {
  const rows = ctx.db
    .selectFrom('campaign_sends')
    .select('id')
    .where((eb) => eb.or([eb('person_id', '=', id), ...(addresses.length > 0 ? [eb('address', 'in', addresses)] : [])]))
  return (await rows.orderBy('id').execute()).map((row) => row.id)
}

/** Finds the imports whose file has the person: its records, and rows that were refused. */
async function findImports(ctx: Context, ids: Scope['ids'], names: readonly string[]): Promise<void> {
  const records = ctx.db
    .selectFrom('import_records')
    .select('import_id as id')
    .distinct()
    .where((eb) =>
      eb.or([
        eb.and([eb('entity_type', '=', 'persons'), eb('record_id', 'in', ids.persons)]),
        ...(ids.leads.length > 0 ? [eb.and([eb('entity_type', '=', 'leads'), eb('record_id', 'in', ids.leads)])] : []),
      ]),
    )
  const found = new Set((await records.execute()).map((row) => row.id))
  for (const name of names)
    for (const row of await query(
      ctx,
      sql<{ id: number }>`select distinct import_id as id from import_errors
        where lower(cast(cells as text)) like ${`%${fold(name)}%`}`,
    ))
      found.add(row)
  const files = ctx.db
    .selectFrom('imports')
    .innerJoin('files', 'files.id', 'imports.file_id')
    .select(['imports.id', 'files.sha256', 'files.content_type'])
  for (const { id, sha256 } of await files.execute())
    if (!found.has(id) && (await mentions(ctx, sha256, names))) found.add(id)
  ids.imports.push(...found)
}

/** Returns whether the stored file has one of the texts. A workbook is compressed: it has none. */
async function mentions(ctx: Context, sha256: string, names: readonly string[]): Promise<boolean> {
  const stored = names.length === 0 ? null : await ctx.services.files.find(sha256)
  if (!stored || stored.size === 0) return false
  const wanted = names.map(fold)
  let before = ''
  for await (const chunk of stored.read(0, stored.size - 1)) {
    const text = before + fold(Buffer.from(chunk as Buffer).toString('utf8'))
    if (wanted.some((each) => text.includes(each))) return true
    before = text.slice(-300)
  }
  return false
}

async function findFiles(ctx: Context, ids: Scope['ids']): Promise<number[]> {
  const owners: [string, readonly number[]][] = [
    ['persons', ids.persons],
    ['leads', ids.leads],
    ['quotes', ids.quotes],
    ['activities', ids.activities],
    ['emails', ids.emails],
    ['imports', ids.imports],
  ]
  const found: number[] = []
  for (const [type, each] of owners) {
    if (each.length === 0) continue
    const rows = ctx.db.selectFrom('files').select('id').where('owner_type', '=', type).where('owner_id', 'in', each)
    found.push(...(await rows.orderBy('id').execute()).map((row) => row.id))
  }
  // The original bytes of an e-mail have the addresses of all recipients.
  if (ids.sharedEmails.length > 0) {
    const originals = ctx.db.selectFrom('emails').select('raw_file_id').where('id', 'in', ids.sharedEmails)
    found.push(...(await originals.execute()).flatMap((row) => row.raw_file_id ?? []))
  }
  return found
}

interface Facts {
  exists: boolean
  names: Set<string>
  addresses: string[]
  numbers: string[]
  externalIds: Set<string>
}

/**
 * Collects the names, addresses and numbers that the person has or had. `all` are the id and those
 * of the persons that were merged into it.
 */
async function factsOf(ctx: Context, id: number, all: readonly number[]): Promise<Facts> {
  const row = await ctx.db.selectFrom('persons').selectAll().where('id', '=', id).executeTakeFirst()
  const events = ctx.db.selectFrom('events').select(['before', 'after']).where('entity_type', '=', 'persons')
  const archives = ctx.db.selectFrom('archives').select(['before', 'rows']).where('entity_type', '=', 'persons')
  const texts: (string | null)[] = [row ? JSON.stringify(row) : null]
  for (const event of await events.where('entity_id', 'in', all).execute()) texts.push(event.before, event.after)
  for (const archive of await archives.where('entity_id', 'in', all).execute()) texts.push(archive.before, archive.rows)
  const external = ctx.db
    .selectFrom('person_external_ids')
    .select('external_id')
    .where('person_id', '=', id)
    .union(ctx.db.selectFrom('person_former_ids').select('external_id').where('person_id', '=', id))
  const facts = {
    names: new Set<string>(),
    addresses: new Set<string>(),
    numbers: new Set<string>(),
    externalIds: new Set((await external.execute()).map((each) => each.external_id)),
  }
  for (const text of texts) if (text !== null) collect(JSON.parse(text), facts)
  return {
    ...{ exists: row !== undefined, names: facts.names, externalIds: facts.externalIds },
    addresses: [...facts.addresses],
    numbers: [...facts.numbers].filter((each) => each.replaceAll(/\D/g, '').length >= 6),
  }
}

type Collected = Record<'names' | 'addresses' | 'numbers' | 'externalIds', Set<string>>

/** Keys of snapshots and rows that refer to other records. */
const foreign = new Set(['organization', 'user', 'tags', 'leads'])

function collect(value: unknown, facts: Collected, key = ''): void {
  if (typeof value === 'string') {
    const text = value.trim()
    if (/^[^\s@"{[]+@[^\s@]+$/.test(text)) facts.addresses.add(addressKey(text))
    else if (key === 'name') facts.names.add(text)
    else if (key === 'external_id') facts.externalIds.add(text)
    else if (key === 'contact_numbers.value' || key === 'number') facts.numbers.add(text)
    else if (/^[[{]/.test(text)) collect(parsedOrNull(text), facts, key)
    return
  }
  if (Array.isArray(value)) for (const each of value) collect(each, facts, key)
  else if (typeof value === 'object' && value !== null)
    for (const [name, each] of Object.entries(value)) {
      if (foreign.has(name)) continue
      if (name === 'external_ids')
        for (const [source, text] of Object.entries(each ?? {})) facts.externalIds.add(`${source}:${text}`)
      else collect(each, facts, name === 'value' ? `${key}.value` : name)
    }
}

/** Returns the parsed JSON; null for another text. */
export function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Leaves out texts that also name others, so that an erasure does not change their records. */
async function namesOf(ctx: Context, id: number, facts: Facts) {
  const taken = async (table: 'persons' | 'users' | 'organizations', key: string): Promise<boolean> => {
    const rows = ctx.db
      .selectFrom(table as keyof DB & 'persons')
      .select('id')
      .where('name_key', '=', key)
    return (await (table === 'persons' ? rows.where('id', '<>', id) : rows).executeTakeFirst()) !== undefined
  }
  const addresses: string[] = []
  for (const address of facts.addresses) {
    const others = (await personsWith(ctx, [address])).select('id').where('id', '<>', id)
    const users = ctx.db.selectFrom('users').select('id').where('email_key', '=', fold(address))
    if ((await others.executeTakeFirst()) === undefined && (await users.executeTakeFirst()) === undefined)
      addresses.push(address)
  }
  const full: string[] = []
  for (const name of facts.names) {
    const key = textKey(name)
    const isTaken = (await taken('persons', key)) || (await taken('users', key)) || (await taken('organizations', key))
    if (name.includes(' ') && !isTaken) full.push(name)
  }
  const numbers: string[] = []
  for (const number of facts.numbers) {
    const keys = phoneKeys(number, ctx.services.config.country)
    const holders = ctx.db.selectFrom('person_numbers').select('person_id').where('person_id', '<>', id)
    const other = keys.length === 0 ? undefined : await holders.where('number', 'in', keys).executeTakeFirst()
    if (other === undefined) numbers.push(number)
  }
  return {
    addresses,
    names: [...addresses, ...numbers, ...full],
    nearNames: [...facts.addresses, ...facts.numbers, ...facts.names].filter((each) => each.length > 1),
  }
}
