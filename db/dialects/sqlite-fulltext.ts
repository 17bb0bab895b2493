// Full text with FTS5: a virtual table beside the one with the texts, which it does not copy, and triggers that keep the two
// in step. Words compare without case and diacritics and match by their beginning.

import { type Kysely, sql } from 'kysely'
import type { FullText, FullTextHit } from './dialect.ts'

const columns = ['entity_type', 'title', 'body'] as const
/** How much a word counts in each of the columns; the type is there to narrow a query. */
const weights = sql.raw('0.0, 10.0, 1.0')

const wordsOf = (table: string): string => `${table}_words`

/** A word as FTS5 reads nothing but text; one with a stop in it, such as an address, is a phrase. The end may go on. */
const beginning = (word: string): string => `${quoted(word)}*`

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

const isWord = (text: string): boolean => /[\p{L}\p{N}\p{Co}]/u.test(text)

export const sqliteFullText: FullText = {
  async create(db, table) {
    const words = wordsOf(table)
    const of = (row: 'new' | 'old'): string => columns.map((column) => `${row}.${column}`).join(', ')
    const add = `insert into ${words} (rowid, ${columns}) values (new.id, ${of('new')});`
    const remove = `insert into ${words} (${words}, rowid, ${columns}) values ('delete', old.id, ${of('old')});`
    const statements = [
      `create virtual table ${words} using fts5(${columns}, content='${table}', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3')`,
      `create trigger ${words}_insert after insert on ${table} begin ${add} end`,
      `create trigger ${words}_delete after delete on ${table} begin ${remove} end`,
      `create trigger ${words}_update after update of ${columns} on ${table} begin ${remove} ${add} end`,
      `insert into ${words} (${words}) values ('rebuild')`,
    ]
    for (const statement of statements) await sql.raw(statement).execute(db)
  },

  async drop(db, table) {
    const words = wordsOf(table)
    for (const event of ['insert', 'delete', 'update'])
      await sql`drop trigger if exists ${sql.ref(`${words}_${event}`)}`.execute(db)
    await sql`drop table if exists ${sql.table(words)}`.execute(db)
  },

  hits(table, { words: asked, types, among, limit }) {
    const words = sql.table(wordsOf(table))
    const beginnings = asked.filter(isWord).map(beginning).join(' AND ')
    if (beginnings === '' || types.length === 0) return null
    const query = `entity_type : (${types.map(quoted).join(' OR ')}) AND {title body} : (${beginnings})`
    // The sign keeps FTS5 from being asked once for each of the ids.
    const narrowed = among ? sql`and +rowid in ${among}` : sql``
    return sql<FullTextHit>`select rowid as id, -bm25(${words}, ${weights}) as score from ${words} where ${words} match ${query} ${narrowed} order by score desc, rowid desc limit ${limit}`
  },

  async finding(db, table) {
    const words = sql.table(wordsOf(table))
    try {
      await sql`insert into ${words} (${words}, rank) values ('integrity-check', 1)`.execute(db as Kysely<unknown>)
      return null
    } catch (cause) {
      return cause instanceof Error ? cause.message : String(cause)
    }
  },
}
