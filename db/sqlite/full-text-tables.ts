// Builds the SQL of the full-text indexes (FTS5): a word index and a trigram index, both over
// folded texts (schema/search-folding.ts). The indexes do not store the texts. Triggers update the
// indexes when the table changes.

export const indexedColumns = ['title', 'body'] as const

export const wordIndexOf = (table: string): string => `${table}_words`
/**
 * Returns the name of the trigram index. Its suffix `_pieces` is historical, because a new name
 * would need a migration.
 */
export const trigramIndexOf = (table: string): string => `${table}_pieces`
/** Returns the name of the view that gives the words of each row to the word index. */
export const wordTextsOf = (table: string): string => `${table}_word_texts`
export const indexesOf = (table: string): string[] => [wordIndexOf(table), trigramIndexOf(table)]

/** The minimum number of segments of one level that a merge combines. */
const segmentsPerMerge = 16
/**
 * The number of segments of one level at which FTS5 merges inside a write. Every query reads every
 * segment, so more segments would slow down queries.
 */
const maxSegments = 500
/**
 * The number of pages that a merge step writes. A step blocks other writes for some tens of
 * milliseconds, or longer for a very common word. Smaller steps take longer in total.
 */
const pagesPerStep = 100

/**
 * Returns a statement that merges a few segments. The caller repeats the statement until at most
 * one row changes (maintenance.ts).
 */
export const mergeOf = (index: string): string =>
  `insert into ${index} (${index}, rank) values ('merge', ${pagesPerStep})`

export const mergesOf = (table: string): string[] => indexesOf(table).map(mergeOf)

/**
 * Returns the statement that creates the index `index` with the name `name`, which differs during a
 * rebuild. The trigram index stores no positions (`detail=none`), so it has only a tenth of the
 * size of the texts.
 */
export const creationOf = (table: string, index: string, name: string): string =>
  index === wordIndexOf(table)
    ? `create virtual table ${name} using fts5(${indexedColumns}, content='${wordTextsOf(table)}', content_rowid='id', tokenize='unicode61 remove_diacritics 0', prefix='2 3')`
    : `create virtual table ${name} using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')`

/**
 * Returns the statements that disable merging inside writes up to `maxSegments`. By default, FTS5
 * merges segments inside a write, which can take a second.
 */
export const settingsOf = (name: string): string[] => [
  `insert into ${name} (${name}, rank) values ('automerge', 0)`,
  `insert into ${name} (${name}, rank) values ('usermerge', ${segmentsPerMerge})`,
  `insert into ${name} (${name}, rank) values ('crisismerge', ${maxSegments})`,
]

/**
 * Returns the SQL for the folded text of a row. Every connection has the SQL functions
 * (dialect.ts).
 */
export const foldedTextOf = (row: string): string => `search_fold(${row}title || char(10) || ${row}body)`

/** Returns the SQL for what the word index gets of a row. */
export const wordsOf = (row: string): string => `search_words(${row}title), search_words(${row}body)`

const wordTexts = (table: string, kind: string): string =>
  `create ${kind} ${wordTextsOf(table)} (id, ${indexedColumns}) as select id, ${wordsOf('')} from ${table}`

/** Returns the statement that creates the view of `wordTextsOf`. */
export const wordTextsView = (table: string): string => wordTexts(table, 'view if not exists')

/**
 * Returns the statements for the triggers of the index `name`: one adds the new row, and the other
 * removes the old row.
 */
export function rowChangesOf(table: string, index: string, name: string): { add: string; remove: string } {
  if (index === wordIndexOf(table))
    return {
      add: `insert into ${name} (rowid, ${indexedColumns}) values (new.id, ${wordsOf('new.')});`,
      remove: `insert into ${name} (${name}, rowid, ${indexedColumns}) values ('delete', old.id, ${wordsOf('old.')});`,
    }
  return {
    add: `insert into ${name} (rowid, text) values (new.id, ${foldedTextOf('new.')});`,
    remove: `delete from ${name} where rowid = old.id;`,
  }
}

export const watchedBy = (table: string, index: string): string =>
  index === wordIndexOf(table) ? String(indexedColumns) : 'title, body'

/** Returns the statements that create the triggers of an index. */
export function triggersOf(table: string, index: string): string[] {
  const { add, remove } = rowChangesOf(table, index, index)
  return [
    `create trigger ${index}_insert after insert on ${table} begin ${add} end`,
    `create trigger ${index}_delete after delete on ${table} begin ${remove} end`,
    `create trigger ${index}_update after update of ${watchedBy(table, index)} on ${table} begin ${remove} ${add} end`,
  ]
}

/**
 * Returns a statement that compares the word index with the texts. SQLite takes the write lock for
 * it, although it changes nothing.
 */
export const integrityCheckOf = (table: string): string =>
  `insert into ${wordIndexOf(table)} (${wordIndexOf(table)}, rank) values ('integrity-check', 1)`

/**
 * Returns statements that compare the word index with the texts without the write lock. They copy
 * the tables of the index into a temporary index, which reads the texts through a temporary view.
 */
export function integrityCheckOfCopy(table: string): string[] {
  const words = wordIndexOf(table)
  const stored = ['config', 'data', 'idx', 'docsize'].map((each) => `${words}_${each}`)
  return [
    wordTexts(table, 'temporary view'),
    creationOf(table, words, `temp.${words}`),
    ...stored.flatMap((name) => [`delete from temp.${name}`, `insert into temp.${name} select * from main.${name}`]),
    integrityCheckOf(table),
  ]
}
