// Creates the table of search documents, with one row for each searchable record, and the full-text
// indexes over the folded documents. db/search/search-index.ts fills the table after the last
// migration.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'search_index',
    { id: id(), entity_type: text(), entity_id: integer(), title: text(), subtitle: text(), body: text() },
    { unique: [['entity_type', 'entity_id']] },
  )
  for (const statement of dialect.name === 'postgres' ? postgresStatements : sqliteStatements)
    await sql.raw(statement).execute(db)
}

const words = 'entity_type, title, body'
const wordsOf = (row: string): string => `${row}entity_type, search_words(${row}title), search_words(${row}body)`
const foldedText = (row: string): string => `search_fold(${row}title || char(10) || ${row}body)`
const indexes = ['search_index_words', 'search_index_pieces']

// Written out, so that later changes of the program do not change this migration.
const addWords = `insert into search_index_words (rowid, ${words}) values (new.id, ${wordsOf('new.')});`
const removeWords = `insert into search_index_words (search_index_words, rowid, ${words}) values ('delete', old.id, ${wordsOf('old.')});`
const addPieces = `insert into search_index_pieces (rowid, text) values (new.id, ${foldedText('new.')});`
const removePieces = 'delete from search_index_pieces where rowid = old.id;'

const sqliteStatements = [
  `create view search_index_word_texts (id, ${words}) as select id, ${wordsOf('')} from search_index`,
  `create virtual table search_index_words using fts5(${words}, content='search_index_word_texts', content_rowid='id', tokenize='unicode61 remove_diacritics 0', prefix='2 3')`,
  `create virtual table search_index_pieces using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')`,
  ...indexes.flatMap((index) => [
    `insert into ${index} (${index}, rank) values ('automerge', 0)`,
    `insert into ${index} (${index}, rank) values ('usermerge', 16)`,
    `insert into ${index} (${index}, rank) values ('crisismerge', 500)`,
  ]),
  `create trigger search_index_words_insert after insert on search_index begin ${addWords} end`,
  `create trigger search_index_words_delete after delete on search_index begin ${removeWords} end`,
  `create trigger search_index_words_update after update of ${words} on search_index begin ${removeWords} ${addWords} end`,
  `create trigger search_index_pieces_insert after insert on search_index begin ${addPieces} end`,
  `create trigger search_index_pieces_delete after delete on search_index begin ${removePieces} end`,
  `create trigger search_index_pieces_update after update of title, body on search_index begin ${removePieces} ${addPieces} end`,
]

/**
 * On PostgreSQL, a generated column contains the words. `setUpStatements` creates its functions
 * before the migrations.
 */
const postgresStatements = [
  `alter table search_index add column document tsvector
    generated always as (accord_document(title, body)) stored`,
  'create index search_index_document_index on search_index using gin (document) with (fastupdate = off)',
  `create index search_index_trigram_index on search_index
    using gin ((accord_search_fold(title || chr(10) || body)) gin_trgm_ops) with (fastupdate = off)`,
]
