// The parts of full text with FTS5: two virtual tables beside the one with the texts, which they do not copy, their settings, and
// triggers that keep them in step. In one, words compare without case and diacritics; the other knows every three letters in a row.

export const indexedColumns = ['entity_type', 'title', 'body'] as const

export const wordIndexOf = (table: string): string => `${table}_words`
export const trigramIndexOf = (table: string): string => `${table}_pieces`
export const indexesOf = (table: string): string[] => [wordIndexOf(table), trigramIndexOf(table)]

/** So many pieces of about one size are put together, … */
const mergedAtOnce = 16
/** … or all there are by whoever writes one more, because nobody has done it yet: each is looked into by every question. */
const maxUnmerged = 500
/**
 * Nobody can write meanwhile: some tens of milliseconds, or as long as the commonest word needs. With fewer it takes longer in all,
 * because each of the pieces is written again.
 */
const pagesAtOnce = 100

/** Puts together a little of an index; to be repeated until it changes no more than one row (maintenance.ts). */
export const mergeOf = (index: string): string =>
  `insert into ${index} (${index}, rank) values ('merge', ${pagesAtOnce})`

export const mergesOf = (table: string): string[] => indexesOf(table).map(mergeOf)

/**
 * The index under this name: a new one is made under another than that of the present one. The pieces keep no places, only which rows have
 * one, which takes a tenth of the texts.
 */
export const creationOf = (table: string, index: string, name: string): string =>
  index === wordIndexOf(table)
    ? `create virtual table ${name} using fts5(${indexedColumns}, content='${table}', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3')`
    : `create virtual table ${name} using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')`

/** Every write leaves a piece of index behind. FTS5 would put them together in the middle of a later one, for a second now and then. */
export const settingsOf = (name: string): string[] => [
  `insert into ${name} (${name}, rank) values ('automerge', 0)`,
  `insert into ${name} (${name}, rank) values ('usermerge', ${mergedAtOnce})`,
  `insert into ${name} (${name}, rank) values ('crisismerge', ${maxUnmerged})`,
]

/** `fold` is a function of every connection that writes rows. */
export const foldedTextOf = (row: string): string => `fold(${row}title || char(10) || ${row}body)`

const valuesOf = (row: string): string => indexedColumns.map((column) => `${row}.${column}`).join(', ')

/** The statements that add a row to the index of this name, and remove one. */
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

/** They keep the index in step with the table. */
export function triggersOf(table: string, index: string): string[] {
  const { add, remove } = rowChangesOf(table, index, index)
  return [
    `create trigger ${index}_insert after insert on ${table} begin ${add} end`,
    `create trigger ${index}_delete after delete on ${table} begin ${remove} end`,
    `create trigger ${index}_update after update of ${watchedBy(table, index)} on ${table} begin ${remove} ${add} end`,
  ]
}

/** Compares the words with the texts. It changes nothing, and SQLite takes the write lock for it all the same. */
export const integrityCheckOf = (table: string): string =>
  `insert into ${wordIndexOf(table)} (${wordIndexOf(table)}, rank) values ('integrity-check', 1)`

/** The same without the lock: what FTS5 stores of the words is copied into a temporary index over a view of the same texts. */
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
