// The tables of full text with FTS5: a word index, which ignores case and diacritics, and a trigram
// index. Neither copies the texts. Triggers keep both in step with the table.

export const indexedColumns = ['entity_type', 'title', 'body'] as const

export const wordIndexOf = (table: string): string => `${table}_words`
/** The suffix is older than the word trigram; renaming a virtual table would need a migration. */
export const trigramIndexOf = (table: string): string => `${table}_pieces`
export const indexesOf = (table: string): string[] => [wordIndexOf(table), trigramIndexOf(table)]

/** Merging combines this many segments of one level. */
const segmentsPerMerge = 16
/** At this many segments a write merges them itself, because every query reads every segment. */
const maxSegments = 500
/**
 * Writes wait during a merge step: some tens of milliseconds, or longer for a very common word.
 * Smaller steps take longer in total, because FTS5 writes each segment again.
 */
const pagesPerStep = 100

/** Merges a few segments. To be repeated until it changes at most one row (maintenance.ts). */
export const mergeOf = (index: string): string =>
  `insert into ${index} (${index}, rank) values ('merge', ${pagesPerStep})`

export const mergesOf = (table: string): string[] => indexesOf(table).map(mergeOf)

/**
 * Creates the index under this name; a rebuild uses another name than the present index has. The
 * trigram index stores no positions, which keeps it at a tenth of the size of the texts.
 */
export const creationOf = (table: string, index: string, name: string): string =>
  index === wordIndexOf(table)
    ? `create virtual table ${name} using fts5(${indexedColumns}, content='${table}', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3')`
    : `create virtual table ${name} using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')`

/**
 * Each write adds a segment. By default FTS5 merges inside a later write, which can take a second.
 */
export const settingsOf = (name: string): string[] => [
  `insert into ${name} (${name}, rank) values ('automerge', 0)`,
  `insert into ${name} (${name}, rank) values ('usermerge', ${segmentsPerMerge})`,
  `insert into ${name} (${name}, rank) values ('crisismerge', ${maxSegments})`,
]

/** `fold` is an SQL function of every connection that writes (dialect.ts). */
export const foldedTextOf = (row: string): string => `fold(${row}title || char(10) || ${row}body)`

const valuesOf = (row: string): string => indexedColumns.map((column) => `${row}.${column}`).join(', ')

/** The statements that add a row to the index with this name, and remove one. */
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

/** Triggers that keep the index in step with the table. */
export function triggersOf(table: string, index: string): string[] {
  const { add, remove } = rowChangesOf(table, index, index)
  return [
    `create trigger ${index}_insert after insert on ${table} begin ${add} end`,
    `create trigger ${index}_delete after delete on ${table} begin ${remove} end`,
    `create trigger ${index}_update after update of ${watchedBy(table, index)} on ${table} begin ${remove} ${add} end`,
  ]
}

/**
 * Compares the word index with the texts. SQLite takes the write lock for it, though it changes
 * nothing.
 */
export const integrityCheckOf = (table: string): string =>
  `insert into ${wordIndexOf(table)} (${wordIndexOf(table)}, rank) values ('integrity-check', 1)`

/**
 * The same without the write lock: FTS5's tables are copied into a temporary index over a view of
 * the same texts.
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
