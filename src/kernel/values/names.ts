// Compares names as search does, and finds records by their name.
import { type SqlBool, sql } from 'kysely'
import { keySeparator } from '../../../db/schema/search-folding.ts'
import { fold } from './format.ts'

export { foldedPartOf, queryParts, searchFold, searchPhrase, textKey } from '../../../db/schema/search-folding.ts'

import { foldedPartOf, searchFold, textKey } from '../../../db/schema/search-folding.ts'

/**
 * Returns the records with this name. A record whose name differs only in case comes before records
 * whose names differ in accents, apostrophes or blanks.
 */
export function namedLike<Record extends { name: string }>(records: readonly Record[], name: string): Record[] {
  const exact = records.filter((each) => fold(each.name) === fold(name.trim()))
  return exact.length > 0 ? exact : records.filter((each) => searchFold(each.name) === searchFold(name))
}

/** Returns the rows whose key is that of the name, or else those whose folded part is. */
export function keyedLike<Row extends { name_key: string }>(rows: readonly Row[], name: string): Row[] {
  const exact = rows.filter(({ name_key }) => name_key === textKey(name))
  return exact.length > 0 ? exact : rows.filter(({ name_key }) => foldedPartOf(name_key) === searchFold(name))
}

const afterSeparator = String.fromCharCode(keySeparator.charCodeAt(0) + 1)

/**
 * Returns the condition that the folded part of a `_key` column is one of these texts. The database
 * index of the column finds the rows.
 */
export function hasFoldedKey(column: string, texts: readonly string[]): ReturnType<typeof sql<SqlBool>> {
  const key = sql.ref(column)
  const tests = texts.map(
    (text) => sql`${key} = ${text} or (${key} > ${text + keySeparator} and ${key} < ${text + afterSeparator})`,
  )
  return tests.length === 0 ? sql<SqlBool>`1 = 0` : sql<SqlBool>`(${sql.join(tests, sql` or `)})`
}
