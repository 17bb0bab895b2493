// Full-text search with tsvector and pg_trgm. A generated column contains the words of a row, and a
// trigram index finds text inside words. PostgreSQL updates both with each write.

import { type RawBuilder, sql } from 'kysely'
import { type FullText, type FullTextHit, type IndexRebuild, truncationMark } from '../dialect.ts'

/**
 * The functions that the indexes and queries use. They split text into words like SQLite's
 * tokenizer (sqlite/full-text-tables.ts): letters and digits of any script, without case and
 * diacritics. PostgreSQL parses a body with `return` at creation, so a call does not depend on the
 * search path, which is empty during a restore.
 */
export const functionStatements = [
  `create or replace function accord_fold(content text) returns text language sql immutable strict parallel safe
    return lower(normalize(content, nfc) collate "und-x-icu") collate "C"`,
  `create or replace function accord_digits(content text) returns text language sql immutable strict parallel safe
    return regexp_replace(content, '[^0-9]', '', 'g')`,
  `create or replace function accord_words(content text) returns text language sql immutable strict parallel safe
    return btrim(regexp_replace(
      normalize(
        regexp_replace(normalize(lower(content collate "und-x-icu"), nfd), '[\\u0300-\\u036f]', '', 'g'), nfc
      ) collate "und-x-icu",
      '[^[:alnum:]]+', ' ', 'g'))`,
  `create or replace function accord_document(title text, body text) returns tsvector
    language sql immutable strict parallel safe
    return setweight(to_tsvector('pg_catalog.simple'::regconfig, accord_words(title)), 'A')
      || setweight(to_tsvector('pg_catalog.simple'::regconfig, accord_words(body)), 'D')`,
] as const

/** A match in the title weighs ten times as much as a match in the body. */
const weights = sql.raw(`'{0.1, 0.1, 0.1, 1.0}'`)

const wordsIndexOf = (table: string): string => `${table}_document_index`
const trigramIndexOf = (table: string): string => `${table}_trigram_index`
const textOf = (row: string): string => `accord_fold(${row}title || chr(10) || ${row}body)`

const isWord = (text: string): boolean => /[\p{L}\p{N}\p{Co}]/u.test(text)
const likePattern = (part: string): string => `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`

/**
 * Returns the tsquery for a word prefix. A word with punctuation, such as an e-mail address,
 * becomes a phrase whose last part is a prefix.
 */
const beginning = (word: string): RawBuilder<unknown> =>
  sql`to_tsquery('pg_catalog.simple'::regconfig, replace(accord_words(${word}), ' ', ' <-> ') || ':*')`

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
      `alter table ${table} add column if not exists document tsvector
        generated always as (accord_document(title, body)) stored`,
      `create index if not exists ${wordsIndexOf(table)} on ${table} using gin (document) with (fastupdate = off)`,
      `create index if not exists ${trigramIndexOf(table)} on ${table}
        using gin ((${textOf('')}) gin_trgm_ops) with (fastupdate = off)`,
    ]
    for (const statement of statements) await sql.raw(statement).execute(db)
  },

  async drop(db, table) {
    await sql.raw(`drop index if exists ${wordsIndexOf(table)}`).execute(db)
    await sql.raw(`drop index if exists ${trigramIndexOf(table)}`).execute(db)
    await sql.raw(`alter table ${table} drop column if exists document`).execute(db)
  },

  rebuild: noRebuild,

  hits(table, { words: asked, types, among, limit }) {
    const words = asked.filter(isWord)
    if (words.length === 0 || types.length === 0) return null
    const query = sql.join(words.map(beginning), sql` && `)
    const narrowed = among ? sql`and item.id in ${among}` : sql``
    return sql<FullTextHit>`select item.id, ts_rank(${weights}, item.document, asked.query)::float8 as score
      from ${sql.table(table)} as item cross join (select ${query} as query) as asked
      where item.document @@ asked.query and item.entity_type in (${sql.join(types)}) ${narrowed}
      order by score desc, item.id desc limit ${limit}`
  },

  candidates(table, type, pieces) {
    const asked = pieces.filter((piece) => [...piece].length >= 3)
    if (asked.length === 0) return null
    const text = sql.raw(textOf('item.'))
    const all = sql.join(
      asked.map((piece) => sql`${text} like ${likePattern(piece)} escape '\\'`),
      sql` and `,
    )
    return sql<number>`select item.entity_id from ${sql.table(table)} as item
      where ((${all}) or ${text} like ${likePattern(truncationMark)}) and item.entity_type = ${type}`
  },

  findMismatch: async () => null,
}
