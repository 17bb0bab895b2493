// Full text with FTS5: two virtual tables beside the one with the texts, which they do not copy, and triggers that keep them in step.
// In one, words compare without case and diacritics and match by their beginning; the other knows every three letters in a row.

import { type Kysely, sql } from 'kysely'
import { cutMark, type FullText, type FullTextHit } from './dialect.ts'

const columns = ['entity_type', 'title', 'body'] as const
/** How much a word counts in each of the columns; the type is there to narrow a query. */
const weights = sql.raw('0.0, 10.0, 1.0')

const wordsOf = (table: string): string => `${table}_words`
const piecesOf = (table: string): string => `${table}_pieces`
const indexesOf = (table: string): string[] => [wordsOf(table), piecesOf(table)]

/** So many pieces of about one size are put together, … */
const mergedAtOnce = 16
/** … or all there are by whoever writes one more, because nobody has done it yet: each is looked into by every question. */
const mostUnmerged = 500
/**
 * Nobody can write meanwhile: some tens of milliseconds, or as long as the commonest word needs. With fewer it takes longer in all,
 * because each of the pieces is written anew.
 */
const pagesAtOnce = 100

/** Each puts together a little of an index; to be repeated until it changes no more than one row (sqlite-upkeep.ts). */
export const mergesOf = (table: string): string[] =>
  indexesOf(table).map((index) => `insert into ${index} (${index}, rank) values ('merge', ${pagesAtOnce})`)

/** A word as FTS5 reads nothing but text; one with a stop in it, such as an address, is a phrase. The end may go on. */
const beginning = (word: string): string => `${quoted(word)}*`

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** Every three letters in a row, each once; none of a shorter text. */
const threes = (text: string): string[] => {
  const letters = [...text]
  return [...new Set(letters.slice(2).map((letter, at) => `${letters[at]}${letters[at + 1]}${letter}`))]
}

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
      ...createPieces(table),
      ...indexesOf(table).flatMap((index) => [
        // Every write leaves a piece of index behind. FTS5 would put them together in the middle of a later one, for a second now and then.
        `insert into ${index} (${index}, rank) values ('automerge', 0)`,
        `insert into ${index} (${index}, rank) values ('usermerge', ${mergedAtOnce})`,
        `insert into ${index} (${index}, rank) values ('crisismerge', ${mostUnmerged})`,
      ]),
    ]
    for (const statement of statements) await sql.raw(statement).execute(db)
  },

  async drop(db, table) {
    for (const index of indexesOf(table)) {
      for (const event of ['insert', 'delete', 'update'])
        await sql`drop trigger if exists ${sql.ref(`${index}_${event}`)}`.execute(db)
      await sql`drop table if exists ${sql.table(index)}`.execute(db)
    }
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

  candidates(table, type, pieces) {
    const asked = pieces.flatMap(threes)
    if (asked.length === 0) return null
    const index = sql.table(piecesOf(table))
    const query = `(${asked.map(quoted).join(' AND ')}) OR ${quoted(cutMark)}`
    // A cross join keeps its order: from the hits to their rows.
    return sql<number>`select item.entity_id from ${index} as found cross join ${sql.table(table)} as item where ${sql.ref(`found.${piecesOf(table)}`)} match ${query} and item.id = found.rowid and item.entity_type = ${type}`
  },

  async finding(db, table) {
    const words = sql.table(wordsOf(table))
    const pieces = sql.table(piecesOf(table))
    try {
      await sql`insert into ${words} (${words}, rank) values ('integrity-check', 1)`.execute(db as Kysely<unknown>)
      const { rows } = await sql<{
        missing: number
      }>`select (select count(*) from ${sql.table(table)}) - (select count(*) from ${pieces}) as missing`.execute(db)
      return rows[0]?.missing === 0 ? null : 'some have no pieces'
    } catch (cause) {
      return cause instanceof Error ? cause.message : String(cause)
    }
  },
}

/** It keeps no places, only which rows have a piece: a tenth of the texts. `fold` is a function of every connection that writes rows. */
function createPieces(table: string): string[] {
  const pieces = piecesOf(table)
  const text = (row: string): string => `fold(${row}title || char(10) || ${row}body)`
  const add = `insert into ${pieces} (rowid, text) values (new.id, ${text('new.')});`
  const remove = `delete from ${pieces} where rowid = old.id;`
  return [
    `create virtual table ${pieces} using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')`,
    `create trigger ${pieces}_insert after insert on ${table} begin ${add} end`,
    `create trigger ${pieces}_delete after delete on ${table} begin ${remove} end`,
    `create trigger ${pieces}_update after update of title, body on ${table} begin ${remove} ${add} end`,
    `insert into ${pieces} (rowid, text) select id, ${text('')} from ${table}`,
  ]
}
