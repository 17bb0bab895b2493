// What a slice tells the search index of its records, and helpers to read and compose it. The
// slices declare their documents; this folder keeps the index (search-index.ts).

import { type Compilable, type Expression, type SqlBool, sql } from 'kysely'
import { padToBucket, runCompiled } from '../compiled-queries.ts'
import { truncationMark } from '../dialect.ts'
import { digitsOf } from '../schema/case-folding.ts'
import type { Db } from '../store.ts'

/**
 * One record as the index stores it. Title and body are searched, the title weighs more; the
 * subtitle is only shown.
 */
export interface SearchDocument {
  id: number
  title: string
  subtitle: string
  body: string
}

/** Records of one entity: those with these ids, or the next ones after an id. */
export type IdRange = { ids: readonly number[] } | { after: number; limit: number }

export interface SearchDocumentSource {
  /** Its table, and its name in paths. */
  readonly entity: string
  read(db: Db, range: IdRange): Promise<SearchDocument[]>
  /**
   * The entities whose fields the documents quote, each with the column of this table that refers
   * to it.
   */
  readonly quotes?: Readonly<Record<string, string>>
}

const maxBodyLength = 100_000
/** A cut can leave the first half of a character outside the basic plane. */
const halfCharacter = /[\ud800-\udbff]$/

/** The body of a document: the parts that are not empty, one a line, cut at 100,000 characters. */
export function joinText(...parts: (string | null | undefined)[]): string {
  const whole = parts.filter(Boolean).join('\n')
  return whole.length <= maxBodyLength
    ? whole
    : whole.slice(0, maxBodyLength).replace(halfCharacter, '') + truncationMark
}

/** A subtitle: the parts that are not empty, on one line. */
export const joinLine = (...parts: (string | null | undefined)[]): string => parts.filter(Boolean).join(' · ')

/** The first words of a longer text, as the title of a record that has none. */
export const firstWords = (text: string | null): string =>
  (text ?? '').trim().slice(0, 100).replace(halfCharacter, '').split('\n')[0] ?? ''

/** The values in a JSON list of contact points or addresses, without their labels. */
export function valuesIn(json: string | null): string[] {
  const list: unknown = JSON.parse(json ?? '[]')
  return (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    const value = typeof each === 'string' ? each : (each as { value?: unknown } | null)?.value
    return typeof value === 'string' ? [value] : []
  })
}

/** Phone numbers as they were written and as digits alone, so that both find them. */
export const phoneNumbersIn = (json: string | null): string[] =>
  valuesIn(json).flatMap((number) => [number, digitsOf(number)])

/** A query that can be narrowed, whatever it selects. */
interface Narrowable<Row> extends Compilable<Row> {
  where(condition: Expression<SqlBool>): Narrowable<Row>
  orderBy(by: Expression<unknown>): Narrowable<Row>
  limit(count: number): Narrowable<Row>
  execute(): Promise<Row[]>
}

/**
 * The rows of the query whose `id` in the entity's table is in the range. The query is compiled
 * once for lists of ids.
 */
export function readRange<Row>(db: Db, entity: string, range: IdRange, query: () => Narrowable<Row>): Promise<Row[]> {
  const id = sql.ref(`${entity}.id`)
  if (!('ids' in range))
    return query().where(sql<SqlBool>`${id} > ${range.after}`).orderBy(id).limit(range.limit).execute()
  const ids = padToBucket(range.ids)
  return runCompiled(db, `documents: ${entity}`, ids, () => query().where(sql<SqlBool>`${id} in (${sql.join(ids)})`))
}
