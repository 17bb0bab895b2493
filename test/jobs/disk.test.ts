// Background work on a full disk: work is not repeated because its result could not be stored, and
// no job is given up because of the disk.
import { sql } from 'kysely'
import { beforeEach, describe, expect, it } from 'vitest'
import { defineJob, enqueue } from '../../src/jobs/queue.ts'
import { createWorker, type Worker } from '../../src/jobs/worker.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { useNewServers } from '../support/using.ts'

let worker: Worker
let lines: string[] = []
let runs: number
let behave: () => Promise<void>

const note = defineJob<{ name: string }>({
  kind: 'test.note',
  retryAfterSeconds: [],
  run: async () => {
    runs++
    await behave()
  },
})

const server = useNewServers({ lines: { write: (line) => void lines.push(line) } })
beforeEach(() => {
  lines = []
  runs = 0
  worker = createWorker(server.app.services, [note], [])
})

const ctx = (): Context => systemContext(server.app.services, 'api')
const jobs = () => server.store.db.selectFrom('jobs').select(['state', 'attempts', 'crashes', 'last_error']).execute()
const setReadOnly = (isOn: boolean) => sql`pragma query_only = ${sql.lit(isOn ? 1 : 0)}`.execute(server.store.db)
const said = () => lines.filter((line) => line.includes('background work waits')).length

describe('a job', () => {
  it('that was done is done once, though that cannot be written down for a while', async () => {
    behave = async () => void (await setReadOnly(true))
    await enqueue(ctx(), note, { name: 'a' })
    const working = worker.drain()
    await expect.poll(said).toBe(1)
    await setReadOnly(false)
    await working
    expect([runs, await jobs()]).toEqual([1, []])
  })

  it('that meets a full disk has not failed, and is not buried even on its last attempt', async () => {
    behave = async () => {
      await setReadOnly(true)
      await enqueue(ctx(), note, { name: 'more' }).finally(() => setReadOnly(false))
    }
    await enqueue(ctx(), note, { name: 'a' })
    await worker.drain()
    expect([runs, await jobs()]).toEqual([1, [{ state: 'waiting', attempts: 0, crashes: 0, last_error: null }]])
    behave = async () => undefined
    server.clock.advanceMs(20_000)
    await worker.drain()
    expect([runs, await jobs()]).toEqual([2, []])
  })
})
