// The installation id of a database never changes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findInstallation, installationOf } from '../../db/installation.ts'
import { migrations } from '../../db/migrate.ts'
import { openStore } from '../../db/store.ts'
import { listTraces } from '../../src/installation/installation.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'

const folder = useNewFolder('installation')

const seedRole = async (url: string): Promise<void> => {
  const store = openStore(url)
  const time = 'now'
  await store.db
    .insertInto('roles')
    .values({ name: 'All', name_key: 'all', permission_type: 'all', created_at: time, updated_at: time })
    .execute()
  await store.close()
}

it.each([9, 10])('after %i migrations it is the id that it will have', async (count) => {
  const url = `sqlite:${join(folder, 'accord.db')}`
  const idAfter = async (known: typeof migrations): Promise<string | null> => {
    const store = openStore(url)
    try {
      for (const { up } of known) await up(store.db as never, store.dialect)
      await store.db.schema
        .createTable('migrations')
        .ifNotExists()
        .addColumn('name', 'text')
        .addColumn('applied_at', 'text')
        .execute()
      for (const { name } of known)
        await store.db
          .insertInto('migrations')
          .values({ name, applied_at: `time of ${name}` })
          .execute()
      return await installationOf(store)
    } finally {
      await store.close()
    }
  }
  const first = await idAfter(migrations.slice(0, count))
  const last = await idAfter(migrations.slice(count))
  await seedRole(url)
  expect(await findInstallation(url)).toMatchObject({ state: 'installed', id: last })
  expect(last).toMatch(/^[0-9a-f]{32}$/)
  expect([null, last]).toContain(first)
  expect(first === null).toBe(count < 10)
})

describe('the traces of an installation', () => {
  it('are files, not the folder that a volume brings', () => {
    const config = testConfig({ dataDir: folder, databaseUrl: `sqlite:${join(folder, 'accord.db')}` })
    mkdirSync(join(folder, 'files', 'lost+found'), { recursive: true })
    expect(listTraces(config)).toEqual([])
    writeFileSync(join(folder, 'files', 'some'), 'bytes')
    expect(listTraces(config)).toEqual(['files/'])
  })
})
