// A write resolves after the disk has confirmed its commit. A slow disk does not delay other
// requests.
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { openStore } from '../../db/store.ts'
import { until } from '../support/until.ts'
import { add, alone, closeAll, failure, file, openAnew, store, stored, write } from './grouped.ts'

let prototype: FileHandle
let syncs: MockInstance<FileHandle['datasync']>
/** Each sync waits for this promise. */
let disk: () => Promise<void>
beforeEach(async () => {
  await openAnew()
  const handle = await open(file, 'r')
  prototype = Object.getPrototypeOf(handle) as FileHandle
  // Closing a file releases SQLite's locks of this process, but nothing is locked yet.
  await handle.close()
  disk = async () => undefined
  const { datasync } = prototype
  syncs = vi.spyOn(prototype, 'datasync').mockImplementation(async function (this: FileHandle) {
    await disk()
    return datasync.call(this)
  })
})
afterEach(async () => {
  disk = async () => undefined
  vi.restoreAllMocks()
  await closeAll()
})

/** Simulates a disk that confirms no sync. Returns a function that ends the wait. */
function halt(): () => void {
  let go = (): void => undefined
  const waiting = new Promise<void>((resolve) => {
    go = resolve
  })
  disk = () => waiting
  return go
}

const isAnswered = async (work: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([work.then(() => 'answered'), pause(100)])) === 'answered'

describe('a commit', () => {
  it.each([
    ['a statement', () => add('a')],
    ['a transaction', () => write((db) => add('a', db))],
    ['a long transaction', () => alone((db) => add('a', db))],
    ['a change of tables', () => sql`create table extra (id integer) strict`.execute(store.db)],
  ])('of %s is answered after the disk has confirmed it', async (_what, begin) => {
    const go = halt()
    const work = begin()
    expect(await isAnswered(work)).toBe(false)
    // Other requests can read and begin to write.
    await store.db.selectFrom('lead_sources').select('id').execute()
    go()
    await work
    expect(syncs).toHaveBeenCalled()
  })

  it('that changes nothing waits only for those whose changes it has seen', async () => {
    const reading = () => write((db) => db.selectFrom('lead_sources').select('id').execute())
    await reading()
    expect(syncs).not.toHaveBeenCalled()
    const go = halt()
    const first = add('a')
    await until(() => syncs.mock.calls.length === 1)
    const second = reading()
    expect([await isAnswered(first), await isAnswered(second)]).toEqual([false, false])
    go()
    await Promise.all([first, second])
  })

  it('that changes nothing waits for the disk when it has seen what another process has committed', async () => {
    const other = openStore(`sqlite:${file}`)
    const go = halt()
    const adding = add('a', other.db)
    await until(() => stored().length === 1)
    const reading = write((db) => db.selectFrom('lead_sources').select('id').execute())
    expect(await isAnswered(reading)).toBe(false)
    go()
    await Promise.all([adding, reading])
    await other.close()
  })

  it('of a process that was killed before it synced is synced by the next one', async () => {
    const other = openStore(`sqlite:${file}`)
    await other.transaction((db) => db.selectFrom('lead_sources').select('id').execute())
    expect(syncs).toHaveBeenCalledTimes(1)
    await other.close()
  })

  it('is answered by the next sync when the log could not be opened', async () => {
    const other = openStore(`sqlite:${file}`)
    vi.spyOn(prototype, 'sync').mockRejectedValueOnce(new Error('EMFILE'))
    expect(storageFaultOf(await failure(add('a', other.db)))).toBe('uncertain')
    for (const name of ['b', 'c', 'd']) await add(name, other.db)
    expect(stored()).toEqual(['a', 'b', 'c', 'd'])
    await other.close()
  })

  it('that comes during a sync shares the next one with all that came', async () => {
    const go = halt()
    const writes = [add('a')]
    await until(() => syncs.mock.calls.length === 1)
    for (const name of ['b', 'c', 'd']) {
      writes.push(add(name))
      await pause(20)
    }
    await until(() => stored().length === 4)
    expect(syncs).toHaveBeenCalledTimes(1)
    go()
    await Promise.all(writes)
    expect(syncs).toHaveBeenCalledTimes(2)
    expect(stored()).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('what can be read', () => {
  it('is confirmed when the disk has confirmed it, whichever process has committed it', async () => {
    const other = openStore(`sqlite:${file}`)
    expect(store.whenDurable()).toBeNull()
    for (const [name, db] of [
      ['a', store.db],
      ['b', other.db],
    ] as const) {
      const go = halt()
      const adding = add(name, db)
      await until(() => stored().includes(name))
      expect(await isAnswered(Promise.resolve(store.whenDurable()))).toBe(false)
      go()
      await adding
      await store.whenDurable()
    }
    await other.close()
  })
})

describe('a disk that does not confirm a commit', () => {
  it('makes it uncertain, and later ones certain only after all of the log has come into the file', async () => {
    const asked = vi.spyOn(Worker.prototype, 'postMessage')
    disk = () => Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
    expect(storageFaultOf(await failure(add('a')))).toBe('uncertain')
    expect([store.health(), asked.mock.calls.flat(2)]).toEqual(['uncertain', []])
    await add('b')
    expect(asked.mock.calls.flat(2)).toEqual(['pragma wal_checkpoint(truncate)'])
    expect([store.health(), stored(), syncs.mock.calls.length]).toEqual([null, ['a', 'b'], 1])
    disk = async () => undefined
    await add('c')
    expect(syncs).toHaveBeenCalledTimes(2)
  })

  it('delays the answer to a transaction that has seen it, until it is certain', async () => {
    disk = () => Promise.reject(new Error('EIO'))
    await failure(add('a'))
    const asked = vi.spyOn(Worker.prototype, 'postMessage')
    const seen = await write((db) => db.selectFrom('lead_sources').select('name').where('name', '=', 'a').execute())
    expect([seen.length, asked.mock.calls.flat(2)]).toEqual([1, ['pragma wal_checkpoint(truncate)']])
  })

  it('makes no later commit in the same log certain; the log restarts once it has no reader', async () => {
    disk = () => Promise.reject(new Error('EIO'))
    await failure(add('a'))
    disk = async () => undefined
    const reading = await store.snapshot()
    await write((db) => db.selectFrom('lead_sources').select('name').execute())
    expect(storageFaultOf(await failure(add('b')))).toBe('uncertain')
    await reading.close()
    syncs.mockClear()
    await add('c')
    expect(syncs).not.toHaveBeenCalled()
    await add('d')
    expect(syncs).toHaveBeenCalledTimes(1)
    expect(stored()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('is tried again when asked', async () => {
    disk = () => Promise.reject(new Error('EIO'))
    await failure(add('a'))
    expect([await store.retryWrite(), store.health()]).toEqual([null, null])
  })
})

describe('a slow disk', () => {
  it('has the log begun again by a thread, because SQLite syncs its header within the commit', async () => {
    const other = openStore(`sqlite:${file}`, { slowSyncMs: 10 })
    disk = () => pause(20)
    await add('a', other.db)
    await sql`pragma wal_checkpoint(truncate)`.execute(other.db)
    const asked = vi.spyOn(Worker.prototype, 'postMessage')
    await Promise.all([add('b', other.db), other.transaction((db) => add('c', db))])
    expect(asked.mock.calls.flat(2)).toEqual(['pragma user_version', 'pragma user_version = 0'])
    expect(stored()).toEqual(['a', 'b', 'c'])
    asked.mockClear()
    await add('d', other.db)
    expect(asked).not.toHaveBeenCalled()
    await other.close()
  })
})
