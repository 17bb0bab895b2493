// Writes to housekeeping tables do not change `commitGeneration`, so cached data must not depend on
// these tables.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { housekeepingTables } from '../../db/housekeeping-tables.ts'
import { createForeignCommitCounter } from '../../db/sqlite/connection.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { createReadTransaction } from '../../db/sqlite/read-transaction.ts'
import type { Store } from '../../db/store.ts'
import { add, begin, changes, end, folder, opened } from './commit-generation.ts'

beforeEach(begin)
afterEach(end)

const note = (name: string, { db }: { db: Pick<Store['db'], 'insertInto'> }) =>
  db.insertInto('locks').values({ name, locked_by: 'us', locked_until: 'then' }).execute()

describe.each(['a file', 'memory'])('bookkeeping in %s', (place) => {
  it('leaves the generation as it is, alone and in a transaction, unless more is changed with it', async () => {
    const store = await opened(place)
    const { db } = store
    expect(await changes(store, () => note('a', store))).toBe(false)
    expect(await changes(store, () => db.updateTable('locks').set({ locked_by: 'them' }).execute())).toBe(false)
    expect(await changes(store, () => store.transaction((inside) => note('b', { db: inside })))).toBe(false)
    expect(await changes(store, () => db.deleteFrom('locks').execute())).toBe(false)
    const both = (steps: (typeof add)[]) => () =>
      store.transaction(async (inside) => {
        for (const [index, step] of steps.entries()) await step(`${steps.length} ${step.name} ${index}`, { db: inside })
      })
    expect(await changes(store, both([note, add]))).toBe(true)
    expect(await changes(store, both([add, note, note]))).toBe(true)
  })
})

describe('bookkeeping of several processes', () => {
  it('hides nothing that others commit beside it, and theirs is told from nothing else', async () => {
    const store = await opened('a file')
    const other = await opened('a file')
    expect(
      await changes(store, async () => {
        await add('a', other)
        await note('a', store)
      }),
    ).toBe(true)
    expect(
      await changes(store, async () => {
        await note('b', store)
        await add('b', other)
      }),
    ).toBe(true)
    expect(await changes(store, () => note('theirs', other))).toBe(true)
  })

  it('hides nothing that is committed just when it is looked whether anything was', async () => {
    await opened('a file')
    const open = () => new Sqlite(join(folder, 'accord.db'))
    const [ours, theirs, reader] = [open(), open(), open()]
    const counted = createForeignCommitCounter(ours)
    const work: (() => void)[] = []
    const look = createReadTransaction(reader, {
      onSchema: () => undefined,
      others() {
        work.shift()?.()
        return counted()
      },
    })
    const addLock = (database: Database.Database, name: string) =>
      database.prepare("insert into locks (name, locked_by, locked_until) values (?, 'us', 'then')").run(name)
    const count = () => (reader.prepare('select count(*) as count from locks').get() as { count: number }).count
    const seen = () => {
      look.end()
      return { generation: look.generation(), count: count() }
    }
    const before = seen()
    addLock(ours, 'ours')
    expect(seen()).toEqual({ generation: before.generation, count: 1 })
    // The other connection commits right after the read. Its commit changes the generation now and
    // again when it becomes visible.
    addLock(ours, 'ours too')
    work.push(() => addLock(theirs, 'theirs'))
    const during = seen()
    expect(during.count).toBe(2)
    const after = seen()
    expect(after.count).toBe(3)
    expect(new Set([before, during, after].map(({ generation }) => generation)).size).toBe(3)
    expect(seen()).toEqual(after)
    look.end()
    for (const database of [ours, theirs, reader]) database.close()
  })
})

describe('a look that fails', () => {
  it('loses nothing that others have committed', async () => {
    await opened('a file')
    const [ours, theirs, reader] = [1, 2, 3].map(() => new Sqlite(join(folder, 'accord.db')))
    if (!ours || !theirs || !reader) throw new Error('Three were opened.')
    const counted = createForeignCommitCounter(ours)
    let isFailing = false
    const look = createReadTransaction(reader, {
      onSchema: () => undefined,
      others() {
        if (isFailing) throw new Error('The disk fails.')
        return counted()
      },
    })
    const before = look.generation()
    look.end()
    theirs.prepare("insert into locks (name, locked_by, locked_until) values ('theirs', 'us', 'then')").run()
    isFailing = true
    expect(() => look.generation()).toThrow('The disk fails.')
    expect(reader.inTransaction).toBe(false)
    isFailing = false
    expect(look.generation()).not.toBe(before)
    look.end()
    for (const database of [ours, theirs, reader]) database.close()
  })
})

describe('what is kept in memory', () => {
  const root = fileURLToPath(new URL('../../src', import.meta.url))
  const tables = housekeepingTables.join('|')
  const reading = new RegExp(`['"\`](${tables})['"\`.]|\\b(from|into|update|join) "?(${tables})\\b`)
  /**
   * The only files that may read these tables. They do not cache results with `untilNextCommit`.
   */
  const home = /^(jobs|resources\/system|commands)\/|^resources\/events\/read-log\.ts$/

  it('does not follow from bookkeeping', () => {
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
    const readers = files.filter((name) => reading.test(readFileSync(join(root, name), 'utf8')))
    expect(readers.filter((name) => !home.test(name))).toEqual([])
    expect(readers).toContain('jobs/locks.ts')
    const keepers = readers.filter((name) =>
      /\b(untilNextCommit|untilNextCommitFor)\(/.test(readFileSync(join(root, name), 'utf8')),
    )
    expect(keepers).toEqual([])
  })
})
