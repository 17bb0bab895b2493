// Builds a full-text index beside the current index, a few rows at a time. Copies only the rows
// that exist at the start. Triggers update the new index when rows are inserted and when copied
// rows change.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { IndexRebuild } from '../dialect.ts'
import { isBusy, maxBusyWaitMs } from './busy-retry.ts'
import {
  creationOf,
  foldedTextOf,
  indexedColumns,
  indexesOf,
  mergeOf,
  rowChangesOf,
  settingsOf,
  triggersOf,
  watchedBy,
  wordIndexOf,
  wordsOf,
} from './full-text-tables.ts'
import { createMaintenanceThread } from './maintenance/maintenance-thread.ts'
import { mainFileOf } from './snapshot-thread.ts'

const nextOf = (name: string): string => `${name}_next`
const oldOf = (name: string): string => `${name}_old`
/** Returns the name of the table that stores the last copied id and the highest id at the start. */
const progressOf = (table: string): string => `${table}_renewal`
const events = ['insert', 'delete', 'update'] as const
const triggerOf = (table: string, event: string): string => `${progressOf(table)}_${event}`

async function run(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

/**
 * Deletes the rows of an index in small steps, because dropping a full index would free all its
 * pages in one long step. Nearly all pages of an FTS5 index are in its `_data` table.
 */
async function empty(file: string, index: string): Promise<void> {
  const thread = createMaintenanceThread(file, { isUnsafe: true })
  const step = `delete from ${index}_data where id in (select id from ${index}_data limit ${blocksAtOnce})`
  try {
    // With `normal`, a step does not sync, so other writes do not wait for the disk.
    await thread.run('pragma synchronous = normal')
    for (let since = performance.now(); ; await sleep(gapMs)) {
      try {
        if ((await thread.run(step)).changed === 0) return
        since = performance.now()
      } catch (error) {
        if (!isBusy(error) || performance.now() - since > maxBusyWaitMs) throw error
      }
    }
  } finally {
    await thread.end()
  }
}

/** The number of rows that one step deletes. A step takes some milliseconds. */
const blocksAtOnce = 500
/**
 * The pause between two steps in milliseconds. It must be longer than the longest pause of a
 * waiting process between two attempts to get the lock (busy-retry.ts).
 */
const gapMs = 15

export const sqliteIndexRebuild: IndexRebuild = {
  indexes: indexesOf,

  async begin(db, table, index) {
    const { add, remove } = rowChangesOf(table, index, nextOf(index))
    const isIn = (row: 'old' | 'new') =>
      `exists (select 1 from ${progressOf(table)} where ${row}.id <= last_id or ${row}.id > until_id)`
    const trigger = (event: (typeof events)[number], of = '') =>
      `create trigger ${triggerOf(table, event)} after ${event}${of} on ${table}`
    await run(db, [
      `create table ${progressOf(table)} (id integer primary key, last_id integer not null, until_id integer not null) strict`,
      `insert into ${progressOf(table)} (id, last_id, until_id) select 1, 0, coalesce(max(id), 0) from ${table}`,
      creationOf(table, index, nextOf(index)),
      ...settingsOf(nextOf(index)),
      `${trigger('insert')} when ${isIn('new')} begin ${add} end`,
      `${trigger('delete')} when ${isIn('old')} begin ${remove} end`,
      `${trigger('update', ` of ${watchedBy(table, index)}`)} when ${isIn('old')} begin ${remove} ${add} end`,
    ])
  },

  async copyRows(db, table, index, count) {
    const progress = sql.table(progressOf(table))
    const isNext = sql`id > (select last_id from ${progress}) and id <= (select until_id from ${progress})`
    const rows = sql`from ${sql.table(table)} where ${isNext} order by id`
    const [into, values] =
      index === wordIndexOf(table) ? [String(indexedColumns), wordsOf('')] : ['text', foldedTextOf('')]
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
      `drop table ${progressOf(table)}`,
    ])
    // FTS5 cannot rename a damaged index that lacks one of its tables, so such an index is dropped
    // now.
    await run(db, [`alter table ${index} rename to ${oldOf(index)}`]).catch(() =>
      run(db, [`drop table if exists ${index}`]),
    )
    await run(db, [`alter table ${nextOf(index)} rename to ${index}`, ...triggersOf(table, index)])
  },

  async hasLeftovers(db, table) {
    const names = [progressOf(table), ...indexesOf(table).flatMap((index) => [nextOf(index), oldOf(index)])]
    const found = await sql`select 1 from sqlite_schema where name in (${sql.join(names)}) limit 1`.execute(db)
    return found.rows.length > 0
  },

  async discard(db, table) {
    await run(db, [
      ...events.map((event) => `drop trigger if exists ${triggerOf(table, event)}`),
      `drop table if exists ${progressOf(table)}`,
    ])
    const file = await mainFileOf(db)
    const names = indexesOf(table).flatMap((index) => [nextOf(index), oldOf(index)])
    const { rows } = await sql<{ name: string }>`
      select name from sqlite_schema where type = 'table' and name in (${sql.join(names)})
    `.execute(db)
    for (const { name } of rows) {
      if (file !== null) await empty(file, name)
      await run(db, [`drop table ${name}`])
    }
  },
}
