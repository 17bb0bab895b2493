// Defines the search document of a record, and helpers to compose a document. Each resource defines
// the documents of its records, and search-index.ts stores them.

import { type Compilable, type Expression, type SqlBool, sql } from 'kysely'
import { type Bound, cachedQuery } from '../cached-query.ts'
import { truncationMark } from '../dialect.ts'
import { isIn } from '../long-lists.ts'
import { phoneDocument } from '../schema/phone-numbers.ts'
import type { Db } from '../store.ts'

/**
 * One record as the search index stores it. Title and body are searched, and the title has more
 * weight. The subtitle is only shown.
 */
export interface SearchDocument {
  id: number
  title: string
  subtitle: string
  body: string
}

/**
 * A selection of records of one entity: the records with these ids, or the next `limit` records
 * after an id.
 */
export type IdRange = { ids: readonly number[] } | { after: number; limit: number }

export interface SearchDocumentSource {
  /** The table name of the entity, which is also its name in API paths. */
  readonly entity: string
  read(db: Db, range: IdRange): Promise<SearchDocument[]>
  /**
   * The other entities whose fields the documents contain. Maps each entity to the column that
   * refers to its record.
   */
  readonly quotes?: Readonly<Record<string, string>>
}

const maxBodyLength = 100_000
/** Matches the first half of a surrogate pair at the end of a text, which a cut can leave. */
const halfCharacter = /[\ud800-\udbff]$/

/**
 * Returns the body of a document: the non-empty parts, one on each line. A body over 100,000
 * characters is cut and ends with `truncationMark`.
 */
export function joinText(...parts: (string | null | undefined)[]): string {
  const whole = parts.filter(Boolean).join('\n')
  return whole.length <= maxBodyLength
    ? whole
    : whole.slice(0, maxBodyLength).replace(halfCharacter, '') + truncationMark
}

/** Returns a subtitle: the non-empty parts on one line. */
export const joinLine = (...parts: (string | null | undefined)[]): string => parts.filter(Boolean).join(' · ')

/**
 * Returns the first line of a text, at most 100 characters, as a title for a record without one.
 */
export const firstWords = (text: string | null): string =>
  (text ?? '').trim().slice(0, 100).replace(halfCharacter, '').split('\n')[0] ?? ''

/** Returns the values of a JSON list of contact points or addresses, without their labels. */
export function valuesIn(json: string | null): string[] {
  const list: unknown = JSON.parse(json ?? '[]')
  return (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    const value = typeof each === 'string' ? each : (each as { value?: unknown } | null)?.value
    return typeof value === 'string' ? [value] : []
  })
}

/** Returns the forms of each phone number that a search finds. */
export const phoneNumbersIn = (json: string | null): string[] => valuesIn(json).flatMap(phoneDocument)

/** The part of a Kysely query that `documentSource` needs, for any selected columns. */
interface Narrowable<Row> extends Compilable<Row> {
  where(condition: Expression<SqlBool>): Narrowable<Row>
  orderBy(by: Expression<unknown>): Narrowable<Row>
  limit(count: number): Narrowable<Row>
  execute(): Promise<Row[]>
}

interface Definition<Row> extends Omit<SearchDocumentSource, 'read'> {
  rows: (db: Db) => Narrowable<Row>
  toDocument: (row: Row) => SearchDocument
}

/** Returns the documents of an entity from a query of its table and a function for each row. */
export function documentSource<Row>({ rows, toDocument, ...source }: Definition<Row>): SearchDocumentSource {
  const id = sql.ref(`${source.entity}.id`)
  const byIds = cachedQuery((db: Db, ids: Bound<number[]>) => rows(db).where(isIn(id, ids)))
  const next = (db: Db, after: number, limit: number): Promise<Row[]> =>
    rows(db).where(sql<SqlBool>`${id} > ${after}`).orderBy(id).limit(limit).execute()
  return {
    ...source,
    async read(db, range) {
      const found = 'ids' in range ? await byIds(db, range.ids) : await next(db, range.after, range.limit)
      return found.map(toDocument)
    },
  }
}
