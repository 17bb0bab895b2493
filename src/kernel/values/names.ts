// Compares names as search does, and finds records by their name.
import { type SqlBool, sql } from 'kysely'
import { keySeparator, searchFold } from '../../../db/schema/search-folding.ts'
import { fold } from './format.ts'

export {
  foldedPartOf,
  hasUnspaced,
  queryParts,
  searchFold,
  searchPhrase,
  textKey,
} from '../../../db/schema/search-folding.ts'

/**
 * Returns the records with this name. A record whose name differs only in case comes before records
 * whose names differ in accents, apostrophes or blanks.
 */
export function namedLike<Record extends { name: string }>(records: readonly Record[], name: string): Record[] {
  const exact = records.filter((each) => fold(each.name) === fold(name.trim()))
  return exact.length > 0 ? exact : records.filter((each) => searchFold(each.name) === searchFold(name))
}

const afterSeparator = String.fromCharCode(keySeparator.charCodeAt(0) + 1)

/** The folded text, and the bounds between which the keys with this folded text lie. */
export type FoldedKeyRange = readonly [folded: string, after: string, before: string]

export const foldedKeyRange = (folded: string): FoldedKeyRange => [
  folded,
  folded + keySeparator,
  folded + afterSeparator,
]

/** Returns the condition that the folded part of a `_key` column is the text of the range. */
export function inFoldedKeyRange(
  column: string,
  [folded, after, before]: FoldedKeyRange,
): ReturnType<typeof sql<SqlBool>> {
  const key = sql.ref(column)
  return sql<SqlBool>`(${key} = ${folded} or (${key} > ${after} and ${key} < ${before}))`
}

/**
 * Returns the condition that the folded part of a `_key` column is one of these texts. The database
 * index of the column finds the rows.
 */
export function hasFoldedKey(column: string, texts: readonly string[]): ReturnType<typeof sql<SqlBool>> {
  const tests = texts.map((text) => inFoldedKeyRange(column, foldedKeyRange(text)))
  return tests.length === 0 ? sql<SqlBool>`1 = 0` : sql<SqlBool>`(${sql.join(tests, sql` or `)})`
}
