// Maintenance (db/sqlite/maintenance/maintenance.ts): full-text segments are merged during reads
// and writes, after errors too. A database that is closed during a merge is intact.

import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { openStore } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { until } from '../support/until.ts'
import { found, make, records, whole } from './documents.ts'
import { alone, file, store, turn, write } from './grouped.ts'
import {
  anotherProcess,
  asked,
  closeWatched,
  isStep,
  log,
  makeMuch,
  openWatched,
  pieces,
  steps,
  whenAsked,
} from './maintenance.support.ts'

beforeEach(openWatched)
afterEach(closeWatched)

describe('the index of words', () => {
  it('is put together, and knows every record before and after', async () => {
    for (let count = 0; count < 40; count++) await write((db) => make(db, `Amber${count}`))
    expect(asked).not.toHaveBeenCalled()
    expect(Math.min(...pieces())).toBeGreaterThanOrEqual(40)
    const [first] = (await found(store, 'Amber7')).words
    await store.maintain()
    expect(Math.max(...pieces())).toBeLessThan(16)
    expect(log().done).toBe(log().pages)
    await whole(store)
    expect((await found(store, 'Amber7')).words).toContain(first)
    expect((await found(store, 'Amber')).pieces).toHaveLength(40)
  })

  it('is put together once it is in many pieces, however little was written, between those who write: none is refused or lost', async () => {
    const writing = async (word: string): Promise<void> => {
      for (let count = 0; count < 80; count++) {
        await write((db) => make(db, `${word}${count}`))
        await turn()
      }
    }
    await Promise.all(['Birch', 'Cedar', 'Dahlia'].map(writing))
    await until(() => steps() > 0)
    await store.maintain()
    expect(Math.max(...pieces())).toBeLessThan(64)
    for (const word of ['Birch', 'Cedar', 'Dahlia']) expect((await found(store, word)).pieces).toHaveLength(80)
    await whole(store)
  })

  it('is put together in steps, between which others write, and the log is emptied', async () => {
    const other = anotherProcess()
    let before: number | undefined
    other.once('message', () => {
      before = steps()
    })
    whenAsked((_, text) => {
      if (isStep(text) && steps() === 1) other.postMessage('write')
    })
    await makeMuch()
    await store.maintain()
    await other.terminate()
    expect(before).toBeLessThan(steps())
    const texts = asked.mock.calls.map(([text]) => String(text))
    const between = texts.slice(texts.findIndex(isStep), texts.findLastIndex(isStep))
    expect(between).toContain('pragma wal_checkpoint(passive)')
    await whole(store)
  }, 180_000)

  it('keeps writes waiting until a step is done, and reads not at all', async () => {
    for (let count = 0; count < 20; count++) await write((db) => make(db, `Cherry${count}`))
    const order: string[] = []
    const writes: Promise<unknown>[] = []
    whenAsked((worker, text) => {
      if (writes.length > 0 || !isStep(text)) return
      worker.once('message', () => order.push('answered'))
      writes.push(
        write(async () => order.push('written')),
        records().then(() => order.push('read')),
      )
    })
    await store.maintain()
    await Promise.all(writes)
    expect(order).toEqual(['read', 'answered', 'written'])
  })

  it('is put together in memory as well', async () => {
    const memory = openStore('sqlite::memory:')
    await migrate(memory)
    memory.beforeGroupCommit(searchIndex.update)
    const count = () =>
      sql<{ count: number }>`select count(distinct segid) as count from search_index_words_idx`.execute(memory.db)
    for (let made = 0; made < 70; made++) await memory.transaction((db) => make(db, `Iris${made}`, memory))
    await until(async () => ((await count()).rows[0]?.count ?? 16) < 16)
    await whole(memory)
    await memory.close()
  })

  it('waits for a long transaction, and lets those read who do not write', async () => {
    for (let count = 0; count < 20; count++) await write((db) => make(db, `Elder${count}`))
    const many = pieces()
    let tending: Promise<void> | undefined
    await alone(async (db) => {
      tending = store.maintain()
      for (let count = 0; count < 20; count++) await make(db, `Fennel${count}`)
      expect(await records()).toHaveLength(20)
      expect(pieces()).toEqual(many)
    })
    await tending
    expect(Math.max(...pieces())).toBeLessThan(16)
  })
})

describe('what is due', () => {
  const writeMuch = async (): Promise<void> => {
    for (let count = 0; count < 40; count++) await write((db) => make(db, `Ginger${count}`))
  }

  it('is left alone while another process writes, and done next time', async () => {
    await writeMuch()
    const other = new Sqlite(file)
    other.exec('begin immediate')
    await expect(store.maintain()).resolves.toBeUndefined()
    expect(Math.min(...pieces())).toBeGreaterThanOrEqual(40)
    other.exec('rollback')
    other.close()
    await store.maintain()
    expect(Math.max(...pieces())).toBeLessThan(16)
  })

  it('goes no further than a step when the database is closed meanwhile', async () => {
    await makeMuch()
    const tending = store.maintain()
    await vi.waitUntil(() => steps() > 0, { interval: 1, timeout: 20_000 })
    const begun = steps()
    await store.close()
    await tending
    expect(steps()).toBeLessThanOrEqual(begun + 1)
    asked.mockClear()
    await store.maintain()
    expect(asked).not.toHaveBeenCalled()
    const again = openStore(`sqlite:${file}`)
    await whole(again)
    await again.close()
  })
})
