// What writing leaves for later (db/dialects/sqlite-upkeep.ts): the log of changes comes into the file and the words are put together
// while others read and write, whatever is in the way at the moment, and a database that is closed meanwhile is whole.
import diagnostics from 'node:diagnostics_channel'
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { threadOf } from '../../db/dialects/sqlite-thread.ts'
import { openStore, type Snapshot } from '../../db/open.ts'
import { found, make, records, whole } from './documents.ts'
import { add, alone, closeAll, file, openAnew, store, turn, write } from './grouped.ts'

const sources = ({ db }: Pick<Snapshot, 'db'>) => db.selectFrom('lead_sources').select('id').execute()
const page = 4096
const bytes = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
const noted = <T>(of: string, ask: (other: Database.Database) => T): T => {
  const other = new Database(of, { readonly: true })
  try {
    return ask(other)
  } finally {
    other.close()
  }
}
/** Pages in the log, and how many of them are in the file as well. */
const log = (): { pages: number; done: number } =>
  noted(file, (other) => {
    // It knows of a log once it has read.
    other.exec('select count(*) from sqlite_schema')
    const [, pages = 0, done = 0] = other.prepare<[], number[]>('pragma wal_checkpoint(noop)').raw().get() ?? []
    return { pages, done }
  })
/** In how many pieces the words stand, and the threes of letters. */
const pieces = (): number[] =>
  noted(file, (other) =>
    ['words', 'pieces'].map(
      (index) =>
        other.prepare<[], number>(`select count(distinct segid) from search_index_${index}_idx`).pluck().get() ?? 0,
    ),
  )
/** Stands in a row twice and in an index: a hundred pages and some. */
const long = (name: string): string => name.padEnd(33 * page, '.')

/** What threads were asked to run. */
let asked: MockInstance<Worker['postMessage']>
const checkpoints = (): number => asked.mock.calls.filter(([text]) => String(text).includes('wal_checkpoint')).length

beforeEach(async () => {
  await openAnew()
  // Migrating was much.
  await store.tend()
  await store.dialect.optimise(store.db)
  asked = vi.spyOn(Worker.prototype, 'postMessage')
})
afterEach(async () => {
  asked.mockRestore()
  await closeAll()
})

describe('the log of changes', () => {
  it('comes into the file when a thousand pages are in it, and nothing is asked for before', async () => {
    for (let count = 0; count < 9; count++) await add(long(`${count}`))
    await store.tend()
    expect(asked).not.toHaveBeenCalled()
    const before = log()
    expect(before.pages - before.done).toBeGreaterThan(900)
    await add(long('last'))
    expect(log().pages).toBeGreaterThan(1000)
    await vi.waitFor(() => expect(log().done).toBe(log().pages), 5000)
  })

  it('begins anew again and again under writes that never pause', async () => {
    let longest = 0
    const writing = async (name: string): Promise<void> => {
      for (let count = 0; count < 400; count++) {
        await alone((db) => add(`${name}${count}`.padEnd(5 * page, '.'), db))
        longest = Math.max(longest, bytes())
        await turn()
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(writing))
    // Of more than a hundred that were written; and no commit had to do it (sqlite-connection.ts).
    expect(longest).toBeLessThan(30 * 1024 * 1024)
  }, 60_000)

  it('stays for whoever reads an old state, is not tried with every commit, and comes into the file after that', async () => {
    const snapshot = await store.snapshot()
    for (let count = 0; count < 12; count++) await add(long(`${count}`))
    await store.tend()
    expect(checkpoints()).toBeGreaterThan(0)
    asked.mockClear()
    for (let count = 0; count < 10; count++) {
      await add(`${count}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(asked).not.toHaveBeenCalled()
    expect(log().pages).toBeGreaterThan(1000)
    expect(log().done).toBeLessThan(100)
    expect(await sources(snapshot)).toEqual([])
    await snapshot.close()
    await vi.waitFor(() => expect(log().done).toBe(log().pages), 5000)
  }, 60_000)
})

describe('the index of words', () => {
  it('is put together, and knows every record before and after', async () => {
    for (let count = 0; count < 80; count++) await write((db) => make(db, `Amber${count}`))
    const before = pieces()
    for (const many of before) expect(many).toBeGreaterThanOrEqual(80)
    const [first] = (await found(store, 'Amber7')).words
    await store.tend()
    for (const many of pieces()) expect(many).toBeLessThan(16)
    await whole(store)
    expect((await found(store, 'Amber7')).words).toContain(first)
    expect((await found(store, 'Amber')).pieces).toHaveLength(80)
  })

  it('is put together between those who write: none is refused or lost', async () => {
    const writing = async (word: string): Promise<void> => {
      for (let count = 0; count < 60; count++) {
        await write((db) => make(db, `${word}${count}`))
        await store.tend()
      }
    }
    await Promise.all(['Birch', 'Cedar', 'Dahlia'].map(writing))
    await store.tend()
    for (const many of pieces()) expect(many).toBeLessThan(32)
    for (const word of ['Birch', 'Cedar', 'Dahlia']) expect((await found(store, word)).pieces).toHaveLength(60)
    await whole(store)
  }, 60_000)

  it('keeps those who write in line until it is done with a little, and nobody from reading', async () => {
    for (let count = 0; count < 20; count++) await write((db) => make(db, `Cherry${count}`))
    const order: string[] = []
    const writes: Promise<unknown>[] = []
    asked.mockRestore()
    const { postMessage } = Worker.prototype
    asked = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, text: string) {
      if (writes.length === 0 && text.includes("'merge'")) {
        this.once('message', () => order.push('answered'))
        writes.push(
          write(async () => order.push('written')),
          records().then(() => order.push('read')),
        )
      }
      postMessage.call(this, text)
    })
    await store.tend()
    await Promise.all(writes)
    expect(order).toEqual(['read', 'answered', 'written'])
  })

  it('waits for a long transaction, and lets those read who do not write', async () => {
    for (let count = 0; count < 20; count++) await write((db) => make(db, `Elder${count}`))
    const many = pieces()
    let tending: Promise<void> | undefined
    await alone(async (db) => {
      tending = store.tend()
      for (let count = 0; count < 20; count++) await make(db, `Fennel${count}`)
      expect(await records()).toHaveLength(20)
      expect(pieces()).toEqual(many)
    })
    await tending
    expect(Math.max(...pieces())).toBeLessThan(16)
  })
})

describe('what is due', () => {
  const writeMuch = async (word = 'Ginger'): Promise<void> => {
    for (let count = 0; count < 40; count++) await write((db) => make(db, `${word}${count}`))
  }

  it('is left alone while another process writes, and done next time', async () => {
    await writeMuch()
    const other = new Database(file)
    other.exec('begin immediate')
    await expect(store.tend()).resolves.toBeUndefined()
    expect(Math.min(...pieces())).toBeGreaterThanOrEqual(40)
    other.exec('rollback')
    other.close()
    await writeMuch('Hazel')
    await store.tend()
    expect(Math.max(...pieces())).toBeLessThan(16)
  })

  it('is done to the end when the database is closed meanwhile, and not begun any more after that', async () => {
    await writeMuch()
    const tending = store.tend()
    const closing = store.close()
    await Promise.all([tending, closing])
    asked.mockClear()
    await store.tend()
    expect(asked).not.toHaveBeenCalled()
    const again = openStore(`sqlite:${file}`)
    expect((await found(again, 'Ginger')).pieces).toHaveLength(40)
    await whole(again)
    await again.close()
  })
})

describe('the thread', () => {
  it('tells what failed, and goes on', async () => {
    const thread = threadOf(file)
    await expect(thread.run('select * from nowhere')).rejects.toThrow('no such table: nowhere')
    expect(await thread.run('select 7')).toEqual({ row: [7], changed: 0 })
    await thread.end()
  })

  it('tells that a file is not there', async () => {
    const thread = threadOf(`${file}.none`)
    await expect(thread.run('select 7')).rejects.toThrow('unable to open')
    await thread.end()
  })

  it('ends when it has nothing to do, and is begun again', async () => {
    const begun: Worker[] = []
    const onBegun = (message: unknown): unknown => begun.push((message as { worker: Worker }).worker)
    diagnostics.subscribe('worker_threads', onBegun)
    const thread = threadOf(file, { idleMs: 50 })
    await thread.run('select 1')
    const [first] = begun
    await new Promise((resolve) => first?.once('exit', resolve))
    expect(await thread.run('select 2')).toEqual({ row: [2], changed: 0 })
    await thread.end()
    await thread.end()
    diagnostics.unsubscribe('worker_threads', onBegun)
    expect(begun).toHaveLength(2)
  })
})
