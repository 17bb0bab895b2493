// Which words every kind of record is found by: one declaration an entity, read from the tables. What is kept of it, and how
// it stays true, is search.ts.

import { type Compilable, type Expression, type SqlBool, sql } from 'kysely'
import { padToBucket, runCompiled } from '../compiled-queries.ts'
import { truncationMark } from '../dialect.ts'
import { digitsOf } from '../schema/case-folding.ts'
import type { Db } from '../store.ts'

/** What is kept of one record. Title and body are searched, the title counts more; the subtitle is shown only. */
export interface Document {
  id: number
  title: string
  subtitle: string
  body: string
}

/** A record whose document may have changed. */
export interface Stale {
  readonly entity: string
  readonly id: number
}

/** Some records of one entity: those with these ids, or the next ones after an id. */
export type Range = { ids: readonly number[] } | { after: number; limit: number }

export interface Indexed {
  /** Its table, and its name in paths. */
  readonly entity: 'organizations' | 'persons' | 'leads' | 'quotes' | 'products' | 'activities' | 'emails'
  read(db: Db, range: Range): Promise<Document[]>
  /** Records of entities further down whose documents quote these. */
  quotedBy?(db: Db, ids: readonly number[]): Promise<Stale[]>
}

const maxBodyLength = 100_000
/** What a cut can leave of a character outside the basic plane. */
const halfLetter = /[\ud800-\udbff]$/

function text(...parts: (string | null | undefined)[]): string {
  const whole = parts.filter(Boolean).join('\n')
  return whole.length <= maxBodyLength ? whole : whole.slice(0, maxBodyLength).replace(halfLetter, '') + truncationMark
}

const line = (...parts: (string | null | undefined)[]): string => parts.filter(Boolean).join(' · ')

/** The first words of a longer text, for a record without a title of its own. */
const opening = (long: string | null): string =>
  (long ?? '').trim().slice(0, 100).replace(halfLetter, '').split('\n')[0] ?? ''

/** The texts in a JSON list of contact points or addresses, without their labels. */
function points(json: string | null): string[] {
  const list: unknown = JSON.parse(json ?? '[]')
  return (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    const value = typeof each === 'string' ? each : (each as { value?: unknown } | null)?.value
    return typeof value === 'string' ? [value] : []
  })
}

/** A number is found by its digits as well as by how it was written. */
const phones = (json: string | null): string[] => points(json).flatMap((number) => [number, digitsOf(number)])

function parts(json: string | null): Record<string, string | null> {
  return (JSON.parse(json ?? '{}') ?? {}) as Record<string, string | null>
}

/** Whoever is quoted stands above those who quote. The fields are those that `q` looks into (DOMAIN 5.4). */
export const indexed: readonly Indexed[] = [
  {
    entity: 'organizations',
    async read(db, range) {
      const rows = await rowsOf(db, 'organizations', range, () =>
        db.selectFrom('organizations').select(['id', 'name', 'address']),
      )
      return rows.map(({ id, name, address }) => {
        const { city, country, ...rest } = parts(address)
        return { id, title: name, subtitle: line(city, country), body: text(...Object.values(rest), city, country) }
      })
    },
    quotedBy: async (db, ids) =>
      staleOf('persons', await db.selectFrom('persons').select('id').where('organization_id', 'in', ids).execute()),
  },
  {
    entity: 'persons',
    async read(db, range) {
      const persons = () =>
        db
          .selectFrom('persons')
          .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
          .select(['persons.id', 'persons.name', 'persons.emails', 'persons.contact_numbers', 'persons.job_title'])
          .select('organizations.name as organization')
      return (await rowsOf(db, 'persons', range, persons)).map((row) => ({
        id: row.id,
        title: row.name,
        subtitle: line(row.job_title, row.organization),
        body: text(...points(row.emails), ...phones(row.contact_numbers), row.job_title, row.organization),
      }))
    },
    quotedBy: async (db, ids) => [
      ...staleOf('leads', await db.selectFrom('leads').select('id').where('person_id', 'in', ids).execute()),
      ...staleOf('quotes', await db.selectFrom('quotes').select('id').where('person_id', 'in', ids).execute()),
    ],
  },
  {
    entity: 'leads',
    async read(db, range) {
      const leads = () =>
        db
          .selectFrom('leads')
          .leftJoin('persons', 'persons.id', 'leads.person_id')
          .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
          .select(['leads.id', 'leads.title', 'leads.description'])
          .select(['persons.name as person', 'persons.emails', 'organizations.name as organization'])
      return (await rowsOf(db, 'leads', range, leads)).map((row) => ({
        id: row.id,
        title: row.title,
        subtitle: line(row.person, row.organization),
        body: text(row.person, row.organization, ...points(row.emails), row.description),
      }))
    },
  },
  {
    entity: 'quotes',
    async read(db, range) {
      const quotes = () =>
        db
          .selectFrom('quotes')
          .leftJoin('persons', 'persons.id', 'quotes.person_id')
          .select(['quotes.id', 'quotes.subject', 'quotes.description', 'persons.name as person'])
      return (await rowsOf(db, 'quotes', range, quotes)).map((row) => ({
        id: row.id,
        title: row.subject,
        subtitle: line(row.person),
        body: text(row.person, row.description),
      }))
    },
  },
  {
    entity: 'products',
    async read(db, range) {
      const products = () => db.selectFrom('products').select(['id', 'sku', 'name', 'description'])
      return (await rowsOf(db, 'products', range, products)).map((row) => ({
        id: row.id,
        title: row.name,
        subtitle: row.sku,
        body: text(row.sku, row.description),
      }))
    },
  },
  {
    entity: 'activities',
    async read(db, range) {
      const activities = () => db.selectFrom('activities').select(['id', 'type', 'title', 'comment', 'location'])
      return (await rowsOf(db, 'activities', range, activities)).map((row) => ({
        id: row.id,
        title: row.title ?? opening(row.comment),
        subtitle: row.type,
        body: text(row.location, row.comment),
      }))
    },
  },
  {
    entity: 'emails',
    async read(db, range) {
      const emails = () =>
        db.selectFrom('emails').select(['id', 'subject', 'name', 'text', 'from', 'reply_to', 'cc', 'bcc'])
      return (await rowsOf(db, 'emails', range, emails)).map((row) => {
        const from = points(row.from)
        const recipients = [row.reply_to, row.cc, row.bcc].flatMap(points)
        return {
          id: row.id,
          title: row.subject ?? opening(row.text),
          subtitle: row.name ?? from[0] ?? '',
          body: text(row.name, ...from, ...recipients, row.text),
        }
      })
    },
  },
]

const staleOf = (entity: string, rows: readonly { id: number }[]): Stale[] => rows.map(({ id }) => ({ entity, id }))

/** Of a query only what it takes to narrow it, so that one of any shape will do. */
interface Narrowable<Row> extends Compilable<Row> {
  where(condition: Expression<SqlBool>): Narrowable<Row>
  orderBy(by: Expression<unknown>): Narrowable<Row>
  limit(count: number): Narrowable<Row>
  execute(): Promise<Row[]>
}

/** The rows of an entity's own table that are in the range. */
function rowsOf<Row>(db: Db, entity: Indexed['entity'], range: Range, query: () => Narrowable<Row>): Promise<Row[]> {
  const id = sql.ref(`${entity}.id`)
  if (!('ids' in range))
    return query().where(sql<SqlBool>`${id} > ${range.after}`).orderBy(id).limit(range.limit).execute()
  const ids = padToBucket(range.ids)
  return runCompiled(db, `documents: ${entity}`, ids, () => query().where(sql<SqlBool>`${id} in (${sql.join(ids)})`))
}
