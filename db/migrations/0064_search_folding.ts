// Folds the keys of names as search does, stores international phone numbers without their trunk
// prefix, and creates the full-text indexes over folded texts. The search index is filled again
// after the last migration.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'

const named = [
  'attribute_options',
  'attributes',
  'email_templates',
  'groups',
  'lead_pipeline_stages',
  'lead_pipelines',
  'lead_sources',
  'lead_types',
  'marketing_campaigns',
  'marketing_events',
  'organizations',
  'persons',
  'products',
  'roles',
  'tags',
  'users',
  'warehouse_locations',
  'warehouses',
  'webhooks',
  'workflows',
]

const titled: readonly (readonly [table: string, column: string])[] = [
  ['activities', 'title'],
  ['emails', 'subject'],
  ['leads', 'title'],
  ['persons', 'job_title'],
  ['products', 'sku'],
  ['quotes', 'subject'],
  ['warehouses', 'contact_name'],
  ['web_forms', 'title'],
]

const atOnce = 500

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const columns = [...named.map((table) => [table, 'name'] as const), ...titled]
  for (const [table, column] of columns) {
    const key = sql.ref(`${column}_key`)
    await sql`update ${sql.table(table)} set ${key} = ${dialect.textKey(column)}
      where ${key} <> ${dialect.textKey(column)}`.execute(db)
  }
  await storeNumbers(db)
  for (const statement of dialect.name === 'postgres' ? postgresStatements : statements)
    await sql.raw(statement).execute(db)
}

async function storeNumbers(db: Kysely<unknown>): Promise<void> {
  for (let last = 0; ; ) {
    const { rows } = await sql<{ id: number; contact_numbers: string }>`select id, contact_numbers from persons
      where id > ${last} order by id limit ${atOnce}`.execute(db)
    for (const { id, contact_numbers } of rows) {
      const numbers = (JSON.parse(contact_numbers) as { value: string }[]).map(({ value }) => value)
      if (numbers.some((number) => keyOf(number) !== number.replace(/\D/g, ''))) await store(db, id, numbers)
    }
    if (rows.length < atOnce) return
    last = rows.at(-1)?.id ?? 0
  }
}

async function store(db: Kysely<unknown>, id: number, numbers: readonly string[]): Promise<void> {
  await sql`delete from person_numbers where person_id = ${id}`.execute(db)
  for (const key of new Set(numbers.map(keyOf)))
    if (key !== '') await sql`insert into person_numbers (number, person_id) values (${key}, ${id})`.execute(db)
}

/** The country codes whose numbers begin with a zero that is not a trunk prefix. */
const zeroCodes = ['39', '225', '229', '241', '242']
const extension = /(?:ext(?:ension)?|x|app|poste|dw|durchwahl|#)[ .:]{0,3}\d{1,7} *$/i

/** Written out, like the statements below, so that later changes do not change this migration. */
function keyOf(sent: string): string {
  const number = sent.normalize('NFKC')
  const international = number
    .replace(extension, '')
    .replace(/^ *00(?=[1-9])/, '+')
    .replace(/\( *0+ *\)/, '')
  const [, code = '', rest] = /^ *\+(\d{1,3})[^\d]+0(.*)$/s.exec(international) ?? []
  const plain = rest === undefined || zeroCodes.includes(code) ? international : `${code}${rest}`
  return plain.replace(/\D/g, '') || number.replace(/\D/g, '')
}

const words = 'entity_type, title, body'
const wordsOf = (row: string): string => `${row}entity_type, search_words(${row}title), search_words(${row}body)`
const text = (row: string): string => `search_fold(${row}title || char(10) || ${row}body)`
const indexes = ['search_index_words', 'search_index_pieces']

const addWords = `insert into search_index_words (rowid, ${words}) values (new.id, ${wordsOf('new.')});`
const removeWords = `insert into search_index_words (search_index_words, rowid, ${words}) values ('delete', old.id, ${wordsOf('old.')});`
const addPieces = `insert into search_index_pieces (rowid, text) values (new.id, ${text('new.')});`
const removePieces = 'delete from search_index_pieces where rowid = old.id;'

const statements = [
  ...indexes.flatMap((index) => [
    ...['insert', 'delete', 'update'].map((event) => `drop trigger if exists ${index}_${event}`),
    `drop table if exists ${index}`,
  ]),
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
  `insert into search_index_words (search_index_words) values ('rebuild')`,
  `insert into search_index_pieces (rowid, text) select id, ${text('')} from search_index`,
]

/** `setUpStatements` creates the functions before the migrations. */
const postgresStatements = [
  'drop index if exists search_index_document_index',
  'drop index if exists search_index_trigram_index',
  'alter table search_index drop column if exists document',
  `alter table search_index add column document tsvector
    generated always as (accord_document(title, body)) stored`,
  'create index search_index_document_index on search_index using gin (document) with (fastupdate = off)',
  `create index search_index_trigram_index on search_index
    using gin ((accord_search_fold(title || chr(10) || body)) gin_trgm_ops) with (fastupdate = off)`,
]
