// Maintenance (db/sqlite/maintenance/maintenance.ts): the WAL is copied to the database file during
// reads and writes.
import diagnostics from 'node:diagnostics_channel'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createMaintenanceThread } from '../../db/sqlite/maintenance/maintenance-thread.ts'
import { until } from '../support/until.ts'
import { add, alone, file, store, turn, write } from './grouped.ts'
import {
  asked,
  bytes,
  checkpoints,
  closeWatched,
  log,
  long,
  openWatched,
  sources,
  whenAsked,
} from './maintenance.support.ts'

beforeEach(openWatched)
afterEach(closeWatched)

describe('the log of changes', () => {
  it('is checkpointed at a thousand pages, and not before', async () => {
    for (let count = 0; count < 9; count++) await add(long(`${count}`))
    await store.maintain()
    expect(asked).not.toHaveBeenCalled()
    const before = log()
    expect(before.pages - before.done).toBeGreaterThan(900)
    await add(long('last'))
    expect(log().pages).toBeGreaterThan(1000)
    await until(() => log().done === log().pages)
  })

  it('begins anew under writes that never pause', async () => {
    let longest = 0
    const writing = async (name: string): Promise<void> => {
      for (let count = 0; count < 25; count++) {
        await alone(async (db) => {
          for (const each of ['x', 'y', 'z']) await add(long(`${name}${count}${each}`), db)
        })
        longest = Math.max(longest, bytes())
        await turn()
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(writing))
    // Less than was written, and less than the size at which a commit runs the checkpoint
    // (connection.ts).
    expect(longest).toBeLessThan(60 * 1024 * 1024)
  })

  it('that has become long comes into the file while those who write wait, so that the next begins it anew', async () => {
    const orders: string[][] = []
    const writes: Promise<unknown>[] = []
    whenAsked((worker) => {
      const order: string[] = []
      orders.push(order)
      worker.once('message', () => order.push('answered'))
      writes.push(write(async () => order.push('written')))
    })
    await alone(async (db) => {
      for (let count = 0; count < 60; count++) await add(long(`${count}`), db)
    })
    expect(log().pages).toBeGreaterThan(3000)
    await store.maintain()
    await Promise.all(writes)
    expect(orders[0]).toEqual(['written', 'answered'])
    expect(orders[1]).toEqual(['answered', 'written'])
    expect(log().pages).toBeLessThan(1000)
  })

  it.each([
    ['it cannot be done', { failure: 'no room' }],
    ['another connection runs one', { done: { row: [1, -1, -1], changed: 0 } }],
  ])('is not tried again with every commit when %s', async (_, answer) => {
    asked.mockImplementation(function (this: Worker) {
      queueMicrotask(() => this.emit('message', answer))
    })
    for (let count = 0; count < 25; count++) {
      await add(long(`${count}`))
      await turn()
    }
    for (let count = 0; count < 150; count++) {
      await add(`${count} little`)
      await turn()
    }
    // The thread got only a few tasks.
    expect(asked.mock.calls.length).toBeGreaterThan(1)
    expect(asked.mock.calls.length).toBeLessThan(5)
    asked.mockRestore()
    await store.maintain()
  })

  it('stays for a reader of an old state, is not tried with every commit, and is checkpointed after that', async () => {
    const snapshot = await store.snapshot()
    for (let count = 0; count < 12; count++) await add(long(`${count}`))
    await store.maintain()
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
    await until(() => log().done === log().pages)
  })
})

describe('the thread', () => {
  it('tells what failed, and goes on', async () => {
    const thread = createMaintenanceThread(file)
    await expect(thread.run('select * from nowhere')).rejects.toThrow('no such table: nowhere')
    expect(await thread.run('select 7')).toMatchObject({ row: [7], changed: 0 })
    await thread.end()
  })

  it('tells that a file is not there', async () => {
    const thread = createMaintenanceThread(`${file}.none`)
    await expect(thread.run('select 7')).rejects.toThrow('unable to open')
    await thread.end()
  })

  it('ends when it has nothing to do, and is begun again', async () => {
    const begun: Worker[] = []
    const onBegun = (message: unknown): unknown => begun.push((message as { worker: Worker }).worker)
    diagnostics.subscribe('worker_threads', onBegun)
    const thread = createMaintenanceThread(file, { idleMs: 50 })
    await thread.run('select 1')
    thread.idle()
    const [first] = begun
    await new Promise((resolve) => first?.once('exit', resolve))
    expect(await thread.run('select 2')).toMatchObject({ row: [2], changed: 0 })
    await thread.end()
    await thread.end()
    diagnostics.unsubscribe('worker_threads', onBegun)
    expect(begun).toHaveLength(2)
  })
})
