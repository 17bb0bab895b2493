// Storage faults of every connection and thread are recorded (db/sqlite/storage-faults.ts).
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { createFaultLog, type FaultKind, ioQuietMs, maxBusyMs } from '../../db/sqlite/storage-faults.ts'
import { openStore, type RecordedFault, type Store } from '../../db/store.ts'
import { startServer } from '../support/app.ts'
import { openAt } from '../support/engine.ts'
import { useNewFolder } from '../support/folders.ts'

const error = (code: string) => new Sqlite.SqliteError('fails', code)
const present = (faults: readonly RecordedFault[]): FaultKind[] =>
  faults.flatMap(({ kind, present }) => (present === null ? [] : [kind]))

describe('an error of the disk', () => {
  it('is reported until a write has succeeded and a minute has passed without another', () => {
    let now = 1_000
    const faults = createFaultLog(() => now)
    faults.record(error('SQLITE_IOERR_READ'))
    expect(present(faults.list())).toEqual(['io'])
    now += 2 * ioQuietMs
    expect([present(faults.list()), faults.awaitsWrite()]).toEqual([['io'], true])
    faults.recordWrite()
    expect([present(faults.list()), faults.awaitsWrite()]).toEqual([[], false])
    faults.record(error('SQLITE_IOERR_WRITE'))
    faults.recordWrite()
    now += ioQuietMs - 1
    expect(present(faults.list())).toEqual(['io'])
    now += 1
    expect(faults.list().find(({ kind }) => kind === 'io')).toEqual({ kind: 'io', count: 2, present: null })
  })

  it('is not any other error, and damage is never over', () => {
    let now = 0
    const faults = createFaultLog(() => now)
    for (const code of ['SQLITE_BUSY', 'SQLITE_FULL', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_ERROR'])
      faults.record(error(code))
    faults.record(new Error('other'))
    expect(present(faults.list())).toEqual([])
    faults.record(error('SQLITE_CORRUPT_INDEX'))
    faults.recordWrite()
    now += 100 * ioQuietMs
    expect(present(faults.list())).toEqual(['damaged'])
  })
})

describe('maintenance', () => {
  it('fails at once by an error, and by a lock only when another process holds it for minutes', () => {
    let now = 0
    const faults = createFaultLog(() => now)
    faults.recordMaintenance(error('SQLITE_BUSY'))
    now += maxBusyMs - 1
    faults.recordMaintenance(error('SQLITE_BUSY'))
    expect(present(faults.list())).toEqual([])
    now += 1
    faults.recordMaintenance(error('SQLITE_BUSY'))
    expect(present(faults.list())).toEqual(['maintenance'])
    faults.recordMaintenance(null)
    expect(present(faults.list())).toEqual([])
    faults.recordMaintenance(error('SQLITE_IOERR_WRITE'))
    expect(present(faults.list())).toEqual(['io', 'maintenance'])
  })
})

const folder = useNewFolder('faults')
let file: string
beforeEach(() => {
  file = join(folder, 'faults.db')
})
afterEach(() => {
  vi.restoreAllMocks()
})

describe('a store', () => {
  let store: Store
  const run = (text: string, at = store) => sql.raw(text).execute(at.db)
  afterEach(() => store.close())

  it('reports a damaged page that a read, a transaction or a snapshot meets', async () => {
    store = openStore(`sqlite:${file}`)
    for (const name of ['a', 'b', 'c']) {
      await run(`create table ${name} (id integer primary key, name text) strict`)
      await run(`insert into ${name} (name) values ('one')`)
    }
    await store.close()
    const before = new Sqlite(file)
    const roots = before.prepare("select rootpage from sqlite_schema where type = 'table'").pluck().all() as number[]
    before.close()
    const handle = openSync(file, 'r+')
    for (const page of roots) writeSync(handle, Buffer.alloc(4096, 0xff), 0, 4096, (page - 1) * 4096)
    closeSync(handle)

    const meets = [
      () => run('select * from a'),
      () => store.transaction((trx) => sql.raw("insert into b (name) values ('two')").execute(trx)),
      async () => {
        const snapshot = await store.snapshot()
        try {
          for await (const _ of snapshot.each({
            compile: () => sql.raw('select * from c').compile(store.db),
          } as never));
        } finally {
          await snapshot.close()
        }
      },
    ]
    for (const meet of meets) {
      store = openStore(`sqlite:${file}`)
      expect(present(store.faults())).toEqual([])
      await expect(meet()).rejects.toThrow(/malformed/)
      expect(present(store.faults())).toEqual(['damaged'])
      if (meet !== meets.at(-1)) await store.close()
    }
  })
})

describe('a thread of maintenance that fails', () => {
  it('is told by /readyz and /metrics until a round succeeds, and requests are answered', async () => {
    const server = await startServer({ open: openAt(file) })
    const ready = async () => {
      const { status, body } = await server.anonymous.get('//readyz')
      return [status, body.checks?.maintenance]
    }
    const counted = async () =>
      (await server.anonymous.get('//metrics')).text.match(/^accord_database_fault.*maint.*$/gm)
    expect([await ready(), await counted()]).toEqual([
      [200, 'ok'],
      ['accord_database_faults_total{kind="maintenance"} 0', 'accord_database_fault{kind="maintenance"} 0'],
    ])
    const posted = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker) {
      // Ends the thread during its task.
      void this.terminate()
    })
    const description = 'x'.repeat(5_000_000)
    await sql`create table long (text text) strict`.execute(server.store.db)
    await sql`insert into long values (${description})`.execute(server.store.db)
    await server.store.maintain()
    expect(posted).toHaveBeenCalled()
    expect([await ready(), await counted()]).toEqual([
      [200, 'failing'],
      [
        expect.stringMatching(/^accord_database_faults_total\{kind="maintenance"\} [12]$/),
        'accord_database_fault{kind="maintenance"} 1',
      ],
    ])
    expect((await server.admin.post('/sources', { name: 'Trade fair' })).status).toBe(201)
    posted.mockRestore()
    await server.store.maintain()
    expect(await ready()).toEqual([200, 'ok'])
    await server.close()
  })
})
