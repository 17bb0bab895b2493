// Full text made again beside the present one, a few rows at a time. Rows that were taken up and change meanwhile are kept in step by
// triggers of the new index; the others are taken up as they are by then.

import { type Kysely, sql } from 'kysely'
import type { Renewal } from './dialect.ts'
import {
  changesOf,
  columns,
  creationOf,
  indexesOf,
  mergeOf,
  settingsOf,
  textOf,
  triggersOf,
  watchedBy,
  wordsOf,
} from './sqlite-fulltext.tables.ts'

const nextOf = (name: string): string => `${name}_next`
/** Holds the last row that was taken up. */
const progressOf = (table: string): string => `${table}_renewal`
const triggerOf = (table: string, event: string): string => `${progressOf(table)}_${event}`

async function run(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const clear = (table: string): string[] => [
  ...['delete', 'update'].map((event) => `drop trigger if exists ${triggerOf(table, event)}`),
  ...indexesOf(table).map((index) => `drop table if exists ${nextOf(index)}`),
  `drop table if exists ${progressOf(table)}`,
]

export const sqliteRenewal: Renewal = {
  indexes: indexesOf,

  async begin(db, table, index) {
    const { add, remove } = changesOf(table, index, nextOf(index))
    const isTaken = `old.id <= (select last_id from ${progressOf(table)})`
    await run(db, [
      ...clear(table),
      `create table ${progressOf(table)} (id integer primary key, last_id integer not null) strict`,
      `insert into ${progressOf(table)} (id, last_id) values (1, 0)`,
      creationOf(table, index, nextOf(index)),
      ...settingsOf(nextOf(index)),
      `create trigger ${triggerOf(table, 'delete')} after delete on ${table} when ${isTaken} begin ${remove} end`,
      `create trigger ${triggerOf(table, 'update')} after update of ${watchedBy(table, index)} on ${table} when ${isTaken} begin ${remove} ${add} end`,
    ])
  },

  async take(db, table, index, count) {
    const progress = progressOf(table)
    const rows = `from ${table} where id > (select last_id from ${progress}) order by id limit ${count}`
    const [into, values] = index === wordsOf(table) ? [columns, columns] : ['text', textOf('')]
    await run(db, [`insert into ${nextOf(index)} (rowid, ${into}) select id, ${values} ${rows}`])
    const taken = await sql`
      update ${sql.table(progress)} set last_id = next.id
      from (select max(id) as id from (${sql.raw(`select id ${rows}`)})) as next where next.id is not null
    `.execute(db)
    return taken.numAffectedRows === 1n
  },

  merge: (index) => mergeOf(nextOf(index)),

  async finish(db, table, index) {
    await this.take(db, table, index, -1)
    await run(db, [
      ...['insert', 'delete', 'update'].map((event) => `drop trigger if exists ${index}_${event}`),
      ...['delete', 'update'].map((event) => `drop trigger ${triggerOf(table, event)}`),
      `drop table if exists ${index}`,
      `alter table ${nextOf(index)} rename to ${index}`,
      `drop table ${progressOf(table)}`,
      ...triggersOf(table, index),
    ])
  },
}
