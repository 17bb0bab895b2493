// Builds the SQL of the full-text indexes (FTS5): a word index, which ignores case and diacritics,
// and a trigram index. The indexes do not store the texts. Triggers update the indexes when the
// table changes.

export const indexedColumns = ['entity_type', 'title', 'body'] as const

export const wordIndexOf = (table: string): string => `${table}_words`
/**
 * Returns the name of the trigram index. Its suffix `_pieces` is historical, because a new name
 * would need a migration.
 */
export const trigramIndexOf = (table: string): string => `${table}_pieces`
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
    ? `create virtual table ${name} using fts5(${indexedColumns}, content='${table}', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3')`
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
 * Returns the SQL for the case-folded text of a row. Every connection that writes has the SQL
 * function `fold` (dialect.ts).
 */
export const foldedTextOf = (row: string): string => `fold(${row}title || char(10) || ${row}body)`

const valuesOf = (row: string): string => indexedColumns.map((column) => `${row}.${column}`).join(', ')

/**
 * Returns the statements for the triggers of the index `name`: one adds the new row, and the other
 * removes the old row.
 */
export function rowChangesOf(table: string, index: string, name: string): { add: string; remove: string } {
  if (index === wordIndexOf(table))
    return {
      add: `insert into ${name} (rowid, ${indexedColumns}) values (new.id, ${valuesOf('new')});`,
      remove: `insert into ${name} (${name}, rowid, ${indexedColumns}) values ('delete', old.id, ${valuesOf('old')});`,
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
    `create temporary view ${table} as select * from main.${table}`,
    creationOf(table, words, `temp.${words}`),
    ...stored.flatMap((name) => [`delete from temp.${name}`, `insert into temp.${name} select * from main.${name}`]),
    integrityCheckOf(table),
  ]
}
