// Merges of persons and organizations: who was merged into whom with what, the external ids that
// the record of a merge could not take, and the keys by which possible duplicates are found.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createIndex,
  createTable,
  id,
  integer,
  json,
  key,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
} from '../schema/columns.ts'

const kinds = ['email', 'phone', 'name', 'domain']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const record of ['person', 'organization']) {
    const owner = `${record}_id`
    const table = `${record}s`
    await createTable(
      db,
      dialect,
      `${record}_merges`,
      {
        id: id(),
        [owner]: references(table, 'cascade'),
        /** Without a foreign key, because the merged record is gone. */
        merged_id: integer(),
        /** The record of the merge. A later merge changes the owner, and its end sets it again. */
        into_id: integer(),
        /** The links and values that moved, for `unmerge`. */
        moves: json(),
        created_at: timestamp(),
      },
      { unique: [['merged_id']], indexes: [[owner], ['created_at']] },
    )
    await createTable(
      db,
      dialect,
      `${record}_former_ids`,
      { [owner]: references(table, 'cascade'), source: text(), external_id: key() },
      { primaryKey: ['external_id'], indexes: [[owner]] },
    )
    await createTable(
      db,
      dialect,
      `${record}_match_keys`,
      { [owner]: references(table, 'cascade'), kind: oneOf(kinds), value: key() },
      { primaryKey: [owner, 'kind', 'value'], indexes: [['kind', 'value', owner]] },
    )
  }
  /** Archives of merged records are kept longer than those of deleted ones. */
  await addColumn(db, dialect, 'archives', 'expires_at', nullable(timestamp()))
  const expiry =
    dialect.name === 'sqlite'
      ? sql`strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '+30 days')`
      : sql`created_at + interval '30 days'`
  await sql`update archives set expires_at = ${expiry}`.execute(db)
  await createIndex(db, dialect, 'archives', { columns: ['expires_at'] })
  await addKeys(db)
}

interface Point {
  value: string
}

interface Person {
  id: number
  name_key: string
  emails: string
  contact_numbers: string
  organization_id: number | null
}

const atOnce = 500

async function addKeys(db: Kysely<unknown>): Promise<void> {
  await eachPart<Person>(db, 'persons', async (people) => {
    const keys = people.flatMap((person) =>
      keysOf(person).map(([kind, value]) => sql`(${person.id}, ${kind}, ${value})`),
    )
    for (let from = 0; from < keys.length; from += atOnce)
      await sql`insert into person_match_keys (person_id, kind, value)
        values ${sql.join(keys.slice(from, from + atOnce))} on conflict do nothing`.execute(db)
  })
  await sql`insert into organization_match_keys (organization_id, kind, value)
    select distinct persons.organization_id, 'domain', known.value from person_match_keys as known
    join persons on persons.id = known.person_id
    where known.kind = 'domain' and persons.organization_id is not null`.execute(db)
  await eachPart<Pick<Person, 'id' | 'name_key'>>(db, 'organizations', async (companies) => {
    const keys = companies.flatMap(({ id, name_key }) => {
      const name = companyName(folded(name_key))
      return name === '' ? [] : [sql`(${id}, 'name', ${name})`]
    })
    if (keys.length > 0)
      await sql`insert into organization_match_keys (organization_id, kind, value)
        values ${sql.join(keys)}`.execute(db)
  })
}

async function eachPart<Row extends { id: number }>(
  db: Kysely<unknown>,
  table: string,
  work: (rows: Row[]) => Promise<void>,
): Promise<void> {
  for (let last = 0; ; ) {
    const { rows } = await sql<Row>`select * from ${sql.table(table)}
      where id > ${last} order by id limit ${atOnce}`.execute(db)
    if (rows.length === 0) return
    await work(rows)
    last = rows.at(-1)?.id ?? last
  }
}

/** Returns the keys of a person, as `matchKeys` of its slice did when this migration was written. */
function keysOf({ name_key, emails, contact_numbers, organization_id }: Person): [kind: string, value: string][] {
  const found: [string, string][] = []
  const name = words(folded(name_key))
  if (name !== '' && organization_id !== null) found.push(['name', `${name}@${organization_id}`])
  for (const { value } of JSON.parse(contact_numbers) as Point[]) {
    const digits = value
      .replace(/(?:ext|x|#)[ .:]{0,3}\d{1,7} *$/i, '')
      .replace(/\D/g, '')
      .replace(/^0+/, '')
    if (digits.length >= 6) found.push(['phone', digits.slice(-9)])
  }
  for (const { value } of JSON.parse(emails) as Point[]) {
    const [local = '', domain = ''] = value
      .trim()
      .toLowerCase()
      .split(/@(?=[^@]*$)/)
    if (local === '' || domain === '') continue
    const plain = local.replace(/\+.*$/, '') || local
    const isGmail = domain === 'gmail.com' || domain === 'googlemail.com'
    found.push(['email', isGmail ? `${plain.replaceAll('.', '')}@gmail.com` : `${plain}@${domain}`])
    if (!shared.test(domain)) found.push(['domain', domain])
  }
  return found
}

/** Keys of names have the folded name first, then a separator and the name in lower case. */
const folded = (nameKey: string): string => nameKey.split('\u0001')[0] ?? ''

const words = (name: string): string => name.replace(/[^\p{L}\p{N}]+/gu, ' ').trim()

const forms = new Set(
  ['gmbh', 'mbh', 'ag', 'kg', 'co', 'ohg', 'ug', 'se', 'ltd', 'limited', 'llc', 'llp', 'inc', 'corp', 'plc'].concat([
    ...['company', 'corporation', 'incorporated', 'sa', 'sas', 'sarl', 'srl', 'spa', 'bv', 'nv', 'oy', 'ab', 'as'],
  ]),
)

function companyName(name: string): string {
  const all = words(name.replace(/(?<=\b\p{L})\.(?=\p{L}\b)/gu, '')).split(' ')
  const kept = all.filter((word, index) => index === 0 || !forms.has(word))
  return kept.join('')
}

const shared =
  /^((gmail|googlemail|gmx|outlook|hotmail|live|msn|yahoo|icloud|me|aol|mail|proton|protonmail|web|t-online|freenet|zoho|yandex|qq|163|126|orange|free|wanadoo|laposte|libero|comcast|verizon|btinternet)\.[a-z.]{2,6}|example\.(com|org|net))$/
