// Full-text search with tsvector and pg_trgm. A generated column contains the words of a row, and a
// trigram index finds text inside words. PostgreSQL updates both with each write.

import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type FullText, type FullTextHit, type IndexRebuild, truncationMark } from '../dialect.ts'
import { entities } from '../search/document-ids.ts'
import { foldingFunctions } from './search-folding.ts'

/**
 * The functions that the indexes and queries use. PostgreSQL parses a body with `return` at
 * creation, so a call does not depend on the search path, which is empty during a restore.
 */
export const functionStatements = [
  `create or replace function accord_fold(content text) returns text language sql immutable strict parallel safe
    return lower(normalize(content, nfc) collate "und-x-icu") collate "C"`,
  ...foldingFunctions,
  `create or replace function accord_digits(content text) returns text language sql immutable strict parallel safe
    return regexp_replace(accord_search_fold(content), '[^0-9]', '', 'g')`,
  `create or replace function accord_document(title text, body text) returns tsvector
    language sql immutable strict parallel safe
    return setweight(to_tsvector('pg_catalog.simple'::regconfig, accord_words(title)), 'A')
      || setweight(to_tsvector('pg_catalog.simple'::regconfig, accord_words(body)), 'D')`,
] as const

/**
 * Adds the schema of the extension pg_trgm to the search path of the transaction, because indexes
 * need its operator class. The extension may be in another schema than the tables.
 */
export const withTrigramsInPath = `select set_config('search_path',
    concat_ws(', ', current_setting('search_path'), quote_ident(nspname)), true)
  from pg_extension join pg_namespace on pg_namespace.oid = extnamespace where extname = 'pg_trgm'`

/** The number of hits that are ranked, the newest first, as on SQLite. */
const maxRanked = 5_000

/** A match in the title weighs ten times as much as a match in the body. */
const weights = sql.raw(`'{0.1, 0.1, 0.1, 1.0}'`)

const wordsIndexOf = (table: string): string => `${table}_document_index`
/** Each entity has an index of its own, because one of all would read the matches of all others. */
const trigramIndexOf = (table: string, entity: string): string => `${table}_${entity}_trigram_index`
const truncatedIndexOf = (table: string): string => `${table}_truncated_index`
/** The folded text of a row. It is stored, because folding it again for a test takes 75 µs. */
const foldedColumn = 'folded'

const likePattern = (part: string): string => `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`

/** Returns the tsquery text for words in a row, the last of which is a prefix. */
const beginning = (phrase: string): string => `${phrase.replaceAll(' ', ' <-> ')}:*`

/** A literal, because a parameter would hide the index. The mark has no trigrams. */
const isTruncated = (row: string): string => `${row}${foldedColumn} like '${likePattern(truncationMark)}'`

/** Returns the condition that a document has every piece, or may have it in its missing part. */
function holds(pieces: readonly string[]): RawBuilder<SqlBool> {
  const text = sql.ref(`item.${foldedColumn}`)
  const all = pieces.map((piece) => sql`${text} like ${likePattern(piece)} escape '\\'`)
  return sql`((${sql.join(all, sql` and `)}) or ${sql.raw(isTruncated('item.'))})`
}

const begins = (phrases: readonly string[]): RawBuilder<SqlBool> =>
  sql`item.document @@ to_tsquery('pg_catalog.simple'::regconfig, ${phrases.map(beginning).join(' & ')})`

const found = (pieces: readonly string[], phrases: readonly string[]): RawBuilder<SqlBool> =>
  sql.join([holds(pieces), ...(phrases.length > 0 ? [begins(phrases)] : [])], sql` and `)

/** PostgreSQL always keeps its indexes current, so a rebuild does nothing. */
const noRebuild: IndexRebuild = {
  indexes: () => [],
  begin: async () => undefined,
  copyRows: async () => false,
  merge: () => 'select 1',
  finish: async () => undefined,
  hasLeftovers: async () => false,
  discard: async () => undefined,
}

export const postgresFullText: FullText = {
  async create(db, table) {
    const statements = [
      withTrigramsInPath,
      `alter table ${table} add column if not exists document tsvector
        generated always as (accord_document(title, body)) stored`,
      `alter table ${table} add column if not exists ${foldedColumn} text
        generated always as (accord_search_fold(title || chr(10) || body)) stored`,
      `create index if not exists ${wordsIndexOf(table)} on ${table} using gin (document) with (fastupdate = off)`,
      ...entities.map(
        (entity) => `create index if not exists ${trigramIndexOf(table, entity)} on ${table}
          using gin (${foldedColumn} gin_trgm_ops) with (fastupdate = off) where entity_type = '${entity}'`,
      ),
      `create index if not exists ${truncatedIndexOf(table)} on ${table} (id) where ${isTruncated('')}`,
    ]
    for (const statement of statements) await sql.raw(statement).execute(db)
  },

  async drop(db, table) {
    await sql.raw(`drop index if exists ${wordsIndexOf(table)}`).execute(db)
    // Also drops the indexes of the column.
    for (const column of ['document', foldedColumn])
      await sql.raw(`alter table ${table} drop column if exists ${column}`).execute(db)
  },

  rebuild: noRebuild,

  hits(table, { phrases, types, among, limit }) {
    const either = phrases.map((all) => all.filter(Boolean)).filter((all) => all.length > 0)
    if (either.length === 0 || (types.length === 0 && !among)) return null
    const text = either.map((all) => `(${all.map(beginning).join(' & ')})`).join(' | ')
    const query = sql`to_tsquery('pg_catalog.simple'::regconfig, ${text})`
    const can = [
      ...(types.length > 0 ? [sql`item.entity_type in (${sql.join(types)})`] : []),
      ...(among ? [sql`item.id in ${among}`] : []),
    ]
    return sql<FullTextHit>`select item.id, ts_rank(${weights}, item.document, ${query})::float8 as score
      from (select item.id, item.document from ${sql.table(table)} as item
        where item.document @@ ${query} and (${sql.join(can, sql` or `)})
        order by item.id desc limit ${maxRanked}) as item
      order by score desc, item.id desc limit ${limit}`
  },

  candidates(table, type, pieces, phrases) {
    const asked = pieces.filter((piece) => [...piece].length >= 3)
    if (asked.length === 0) return null
    return sql<number>`select item.entity_id as id from ${sql.table(table)} as item
      where ${found(asked, phrases)} and item.entity_type = ${sql.lit(type)}`
  },

  beginnings(table, type, phrases) {
    if (phrases.length === 0) return null
    return sql<number>`select item.entity_id as id from ${sql.table(table)} as item
      where ${begins(phrases)} and item.entity_type = ${type}`
  },

  // A value and not `exists`, for which PostgreSQL would collect all matching documents.
  test: (table, document, { pieces, phrases }) =>
    sql`(select ${found(pieces, phrases)} from ${sql.table(table)} as item where item.id = ${document})`,

  findMismatch: async () => null,
}
