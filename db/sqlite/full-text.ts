// Creates and queries the full-text indexes (FTS5). The word index matches the beginning of words.
// The trigram index also finds text inside words.

import { type RawBuilder, sql } from 'kysely'
import { type FullText, type FullTextHit, truncationMark } from '../dialect.ts'
import { entityBits, entityNumber } from '../search/document-ids.ts'
import { isDamage } from './errors.ts'
import { sqliteIndexRebuild } from './full-text-rebuild.ts'
import {
  creationOf,
  foldedTextOf,
  indexesOf,
  integrityCheckOf,
  integrityCheckOfCopy,
  settingsOf,
  triggersOf,
  trigramIndexOf,
  wordIndexOf,
  wordTextsOf,
  wordTextsView,
} from './full-text-tables.ts'
import { mainFileOf } from './snapshot-thread.ts'

/** The weights of title and body in the score. */
const weights = sql.raw('10.0, 1.0')

/** The number of hits that are ranked, the newest first. Ranking costs some microseconds each. */
const maxRanked = 5_000

/** Returns the condition that a hit in an index is a document of one of the entities. */
const isOfEntity = (id: RawBuilder<unknown>, entities: readonly string[]) =>
  sql`(${id} & ${sql.lit(2 ** entityBits - 1)}) in (${sql.raw(entities.map(entityNumber).join())})`

const shift = sql.lit(entityBits)

/** Returns an FTS5 query for words in a row, the last of which is a prefix. */
const beginning = (phrase: string): string => `${quoted(phrase)}*`

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** Returns the distinct sequences of three characters in the text. */
const trigrams = (text: string): string[] => {
  const letters = [...text]
  return [...new Set(letters.slice(2).map((letter, at) => `${letters[at]}${letters[at + 1]}${letter}`))]
}

export const sqliteFullText: FullText = {
  async create(db, table) {
    const statements = [
      wordTextsView(table),
      ...indexesOf(table).flatMap((index) => [creationOf(table, index, index), ...settingsOf(index)]),
      ...indexesOf(table).flatMap((index) => triggersOf(table, index)),
      `insert into ${wordIndexOf(table)} (${wordIndexOf(table)}) values ('rebuild')`,
      `insert into ${trigramIndexOf(table)} (rowid, text) select id, ${foldedTextOf('')} from ${table}`,
    ]
    for (const statement of statements) await sql.raw(statement).execute(db)
  },

  async drop(db, table) {
    for (const index of indexesOf(table)) {
      for (const event of ['insert', 'delete', 'update'])
        await sql`drop trigger if exists ${sql.ref(`${index}_${event}`)}`.execute(db)
      await sql`drop table if exists ${sql.table(index)}`.execute(db)
    }
    await sql`drop view if exists ${sql.table(wordTextsOf(table))}`.execute(db)
  },

  rebuild: sqliteIndexRebuild,

  hits(table, { phrases, types, among, limit }) {
    const words = sql.table(wordIndexOf(table))
    const either = phrases.map((all) => all.filter(Boolean)).filter((all) => all.length > 0)
    if (either.length === 0 || (types.length === 0 && !among)) return null
    const beginnings = either.map((all) => `(${all.map(beginning).join(' AND ')})`).join(' OR ')
    // The unary plus keeps SQLite from running one FTS5 query for each id in `among`.
    const can = [
      ...(types.length > 0 ? [isOfEntity(sql`rowid`, types)] : []),
      ...(among ? [sql`+rowid in ${among}`] : []),
    ]
    const ranked = sql`select rowid as id, -bm25(${words}, ${weights}) as score from ${words} where ${words} match ${beginnings} and (${sql.join(can, sql` or `)}) order by rowid desc limit ${maxRanked}`
    return sql<FullTextHit>`select id, score from (${ranked}) order by score desc, id desc limit ${limit}`
  },

  candidates(table, type, pieces) {
    const asked = pieces.flatMap(trigrams)
    if (asked.length === 0) return null
    const index = sql.table(trigramIndexOf(table))
    const query = `(${asked.map(quoted).join(' AND ')}) OR ${quoted(truncationMark)}`
    return sql<number>`select (found.rowid >> ${shift}) as id from ${index} as found where ${sql.ref(`found.${trigramIndexOf(table)}`)} match ${query} and ${isOfEntity(sql`found.rowid`, [type])}`
  },

  beginnings(table, type, phrases) {
    if (phrases.length === 0) return null
    const words = sql.table(wordIndexOf(table))
    const query = phrases.map(beginning).join(' AND ')
    return sql<number>`select (found.rowid >> ${shift}) as id from ${words} as found where ${sql.ref(`found.${wordIndexOf(table)}`)} match ${query} and ${isOfEntity(sql`found.rowid`, [type])}`
  },

  test: null,

  async findMismatch(db, table) {
    try {
      for (const statement of (await mainFileOf(db)) === null ? [integrityCheckOf(table)] : integrityCheckOfCopy(table))
        await sql.raw(statement).execute(db)
      const [rows, pieces] = [table, trigramIndexOf(table)].map((name) => sql.table(`main.${name}`))
      const { rows: found } = await sql<{
        missing: number
      }>`select (select count(*) from ${rows}) - (select count(*) from ${pieces}) as missing`.execute(db)
      return found[0]?.missing === 0 ? null : 'some have no trigrams'
    } catch (cause) {
      if (isDamage(cause)) return cause.message
      throw cause
    }
  },
}
