// Builds a full-text index beside the present one, a few rows at a time. The work is bounded by the rows there at the start: triggers
// of the new index maintain the rows already copied and all rows inserted later. The others are copied as they are by then.

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
/** Holds the last row that was copied, and the last row there was at the start. */
const progressOf = (table: string): string => `${table}_renewal`
const events = ['insert', 'delete', 'update'] as const
const triggerOf = (table: string, event: string): string => `${progressOf(table)}_${event}`

async function run(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const clear = (table: string): string[] => [
  ...events.map((event) => `drop trigger if exists ${triggerOf(table, event)}`),
  ...indexesOf(table).map((index) => `drop table if exists ${nextOf(index)}`),
  `drop table if exists ${progressOf(table)}`,
]

export const sqliteRenewal: Renewal = {
  indexes: indexesOf,

  async begin(db, table, index) {
    const { add, remove } = changesOf(table, index, nextOf(index))
    const isIn = (row: 'old' | 'new') =>
      `exists (select 1 from ${progressOf(table)} where ${row}.id <= last_id or ${row}.id > until_id)`
    const trigger = (event: (typeof events)[number], of = '') =>
      `create trigger ${triggerOf(table, event)} after ${event}${of} on ${table}`
    await run(db, [
      ...clear(table),
      `create table ${progressOf(table)} (id integer primary key, last_id integer not null, until_id integer not null) strict`,
      `insert into ${progressOf(table)} (id, last_id, until_id) select 1, 0, coalesce(max(id), 0) from ${table}`,
      creationOf(table, index, nextOf(index)),
      ...settingsOf(nextOf(index)),
      `${trigger('insert')} when ${isIn('new')} begin ${add} end`,
      `${trigger('delete')} when ${isIn('old')} begin ${remove} end`,
      `${trigger('update', ` of ${watchedBy(table, index)}`)} when ${isIn('old')} begin ${remove} ${add} end`,
    ])
  },

  async take(db, table, index, count) {
    const progress = sql.table(progressOf(table))
    const isNext = sql`id > (select last_id from ${progress}) and id <= (select until_id from ${progress})`
    const rows = sql`from ${sql.table(table)} where ${isNext} order by id`
    const [into, values] = index === wordsOf(table) ? [String(columns), String(columns)] : ['text', textOf('')]
    await sql`
      insert into ${sql.table(nextOf(index))} (rowid, ${sql.raw(into)})
      select id, ${sql.raw(values)} ${rows} limit ${count}
    `.execute(db)
    const last = sql`coalesce((select id ${rows} limit 1 offset ${count - 1}), until_id)`
    const { rows: found } = await sql<{ is_left: number }>`
      update ${progress} set last_id = ${last} returning last_id < until_id as is_left
    `.execute(db)
    return found[0]?.is_left === 1
  },

  merge: (index) => mergeOf(nextOf(index)),

  async finish(db, table, index) {
    await run(db, [
      ...events.flatMap((event) => [
        `drop trigger if exists ${index}_${event}`,
        `drop trigger ${triggerOf(table, event)}`,
      ]),
      `drop table if exists ${index}`,
      `alter table ${nextOf(index)} rename to ${index}`,
      `drop table ${progressOf(table)}`,
      ...triggersOf(table, index),
    ])
  },
}
