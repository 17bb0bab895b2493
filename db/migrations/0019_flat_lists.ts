// Creates the indexes that let a list be read in the order of a joined table, and the index of
// received e-mails that belong to no user, lead or person. The ids of search documents now contain
// their entity (db/search/document-ids.ts), so the word index needs no column for it. PostgreSQL
// stores their folded texts. The rebuild after the last migration writes the documents anew.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const statement of [...statements, ...(dialect.name === 'postgres' ? postgresStatements : sqliteStatements)])
    await sql.raw(statement).execute(db)
  await indexTextAttributes(db, dialect)
}

/** Creates the indexes of the texts of custom attributes (src/resources/attributes/indexes.ts). */
async function indexTextAttributes(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { rows } = await sql<{
    id: number
    entity_type: string
    code: string
  }>`select id, entity_type, code from attributes where is_user_defined = ${sql.raw(dialect.flagLiteral(true))} and type = 'text'`.execute(
    db,
  )
  for (const { id, entity_type, code } of rows) {
    const value = dialect.fold(dialect.jsonText('custom_attributes', code))
    await sql`create index ${sql.ref(`${entity_type}_attribute_${id}_index`)} on ${sql.table(entity_type)} ((${value}), id) where (${value}) is not null`.execute(
      db,
    )
  }
}

const statements = [
  'create index lead_pipeline_stages_sort_order_id_index on lead_pipeline_stages (sort_order, id)',
  `create index emails_unfiled_index on emails (id)
    where source = 'email' and user_id is null and lead_id is null and person_id is null`,
]

const postgresStatements = [
  'drop index search_index_trigram_index',
  `alter table search_index add column folded text
    generated always as (accord_search_fold(title || chr(10) || body)) stored`,
  'create index search_index_trigram_index on search_index using gin (folded gin_trgm_ops) with (fastupdate = off)',
]

const wordsOf = (row: string): string => `search_words(${row}title), search_words(${row}body)`
const index = 'search_index_words'

// Written out, so that later changes of the program do not change this migration.
const add = `insert into ${index} (rowid, title, body) values (new.id, ${wordsOf('new.')});`
const remove = `insert into ${index} (${index}, rowid, title, body) values ('delete', old.id, ${wordsOf('old.')});`

const sqliteStatements = [
  ...['insert', 'delete', 'update'].map((event) => `drop trigger ${index}_${event}`),
  `drop table ${index}`,
  'drop view search_index_word_texts',
  `create view search_index_word_texts (id, title,body) as select id, ${wordsOf('')} from search_index`,
  `create virtual table ${index} using fts5(title,body, content='search_index_word_texts', content_rowid='id', tokenize='unicode61 remove_diacritics 0', prefix='2 3')`,
  `insert into ${index} (${index}, rank) values ('automerge', 0)`,
  `insert into ${index} (${index}, rank) values ('usermerge', 16)`,
  `insert into ${index} (${index}, rank) values ('crisismerge', 500)`,
  `create trigger ${index}_insert after insert on search_index begin ${add} end`,
  `create trigger ${index}_delete after delete on search_index begin ${remove} end`,
  `create trigger ${index}_update after update of title,body on search_index begin ${remove} ${add} end`,
]
