// Decides which e-mails concern a person alone, and which ones others share.
import { sql } from 'kysely'
import { isIn } from '../../../../db/long-lists.ts'
import type { Context } from '../../../kernel/context.ts'
import { addressKey } from '../../../kernel/values/format.ts'

const columns = ['from', 'sender', 'to', 'cc', 'bcc', 'reply_addresses'] as const

interface Mail extends Record<(typeof columns)[number], string | null> {
  id: number
  source: string
  person_id: number | null
  lead_id: number | null
}

interface Person {
  id: number
  leads: readonly number[]
  addresses: readonly string[]
}

/**
 * Returns the e-mails of the person. An e-mail is its own when the person wrote it, or when all
 * others whom it names are users. Others share the rest.
 */
export async function splitEmails(ctx: Context, person: Person): Promise<{ own: number[]; shared: number[] }> {
  const ways = [
    sql`person_id = ${person.id}`,
    ...(person.leads.length > 0 ? [isIn(sql.ref('lead_id'), person.leads)] : []),
    ...person.addresses.flatMap((address) =>
      columns.map((column) => sql`lower(cast(${sql.ref(column)} as text)) like ${`%${address}%`}`),
    ),
  ]
  const rows =
    await sql<Mail>`select id, source, person_id, lead_id, ${sql.join(columns.map((column) => sql.ref(column)))}
    from emails where ${sql.join(ways, sql` or `)} order by id`.execute(ctx.db)
  const mine = new Set(person.addresses)
  const users = await ctx.db.selectFrom('users').select('email').execute()
  const house = new Set(users.map(({ email }) => addressKey(email)))
  const found: { own: number[]; shared: number[] } = { own: [], shared: [] }
  for (const row of [...rows.rows, ...(await deletedMails(ctx, person))]) {
    const authors = addressesIn(row.from)
    const named = columns.flatMap((column) => addressesIn(row[column]))
    const isLinked = Number(row.person_id) === person.id || person.leads.includes(Number(row.lead_id))
    if (!isLinked && !named.some((address) => mine.has(address))) continue
    const isReceived = row.source === 'email'
    const others = [...(isReceived ? authors : []), ...[row.to, row.cc, row.bcc].flatMap(addressesIn)].filter(
      (address) => !mine.has(address) && !house.has(address),
    )
    const isOwn = authors.some((address) => mine.has(address)) || others.length === 0
    ;(isOwn ? found.own : found.shared).push(Number(row.id))
  }
  return found
}

/** Returns the archived rows of deleted e-mails that may name the person. */
async function deletedMails(ctx: Context, { id, addresses }: Person): Promise<Mail[]> {
  const texts = [`"person_id":${id},`, ...addresses]
  const ways = texts.map((text) => sql`lower(cast(archives.rows as text)) like ${`%${text}%`}`)
  const found = await sql<{ rows: string }>`select cast(archives.rows as text) as rows from archives
    where entity_type = 'emails' and (${sql.join(ways, sql` or `)})
    and not exists (select 1 from emails as present where present.id = archives.entity_id)`.execute(ctx.db)
  return found.rows.flatMap(({ rows }) => {
    const [own] = JSON.parse(rows) as { row: Mail }[]
    return own ? [own.row] : []
  })
}

/** Returns the addresses in a column, which has a text or JSON with texts. */
const addressesIn = (stored: string | null): string[] =>
  (stored ?? '')
    .split(/[\s"<>,;:[\]()]+/)
    .filter((part) => {
      const at = part.indexOf('@', 1)
      return at > 0 && at < part.length - 1
    })
    .map(addressKey)
