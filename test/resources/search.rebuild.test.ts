// Repairing the search index: `accord doctor` finds differences from the records, and `accord
// search rebuild` repairs them.
import { readFileSync, writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { acquireLock, releaseLock } from '../../src/jobs/locks.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { newOwnerId } from '../../src/kernel/runtime/process-identity.ts'
import { checkSearch } from '../../src/resources/system/housekeeping.ts'
import { rebuildLock } from '../../src/resources/system/search-rebuild.ts'
import { accord } from '../support/accord.ts'
import { startServer } from '../support/app.ts'
import { useFolder } from '../support/folders.ts'

const folder = useFolder('search')

it('accord search rebuild indexes every record, and accord doctor says when it is needed', {
  timeout: 60_000,
}, async () => {
  const early = await accord(folder, ['search', 'rebuild'])
  expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('run: accord install')])
  await accord(folder, ['install'])
  const store = openStore(`sqlite:${join(folder, 'data', 'accord.db')}`)
  const stamps = { created_at: 'now', updated_at: 'now' }
  await store.db
    .insertInto('products')
    .values({ sku: 'a', sku_key: 'a', name: 'Anvil', name_key: 'anvil', price: 0, ...stamps })
    .execute()
  await store.close()
  const broken = await accord(folder, ['doctor'])
  expect([broken.code, broken.stdout]).toEqual([1, expect.stringContaining('BROKEN  Search: ')])
  expect(broken.stdout).toContain('it has 0 of 1 products. Run: accord search rebuild')
  expect(await accord(folder, ['search', 'rebuild'])).toMatchObject({ code: 0, stdout: 'Indexed 1 records.\n' })
  expect((await accord(folder, ['doctor'])).stdout).toContain('ok      Search')
})

it('accord search rebuild stops when another process rebuilds', { timeout: 60_000 }, async () => {
  const store = openStore(`sqlite:${join(folder, 'data', 'accord.db')}`)
  const later = new Date(Date.now() + 60_000).toISOString()
  await store.db
    .insertInto('locks')
    .values({ name: rebuildLock, locked_by: newOwnerId(), locked_until: later })
    .execute()
  try {
    const refused = await accord(folder, ['search', 'rebuild'])
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain('Another process is rebuilding the search index.')
  } finally {
    await store.db.deleteFrom('locks').where('name', '=', rebuildLock).execute()
    await store.close()
  }
})

it('accord doctor runs at a lower priority than a server, and what writes does not', { timeout: 60_000 }, async () => {
  const noted = join(folder, 'priority')
  const listener = join(folder, 'priority.mjs')
  const text = `import { getPriority } from 'node:os'
    import { writeFileSync } from 'node:fs'
    writeFileSync(${JSON.stringify(noted)}, String(getPriority()))
    export default () => {}`
  writeFileSync(listener, text)
  const priorityOf = async (...command: string[]): Promise<number> => {
    await accord(folder, command, { ACCORD_LISTENERS: listener })
    return Number(readFileSync(noted, 'utf8'))
  }
  expect(await priorityOf('search', 'rebuild')).toBe(getPriority())
  expect(await priorityOf('doctor')).toBe(Math.max(10, getPriority()))
})

it('the nightly check removes what a killed rebuild left, and nothing of one that runs', {
  timeout: 60_000,
}, async () => {
  const server = await startServer()
  try {
    const { store } = server.app.services
    const { rebuild: renewal } = store.dialect.fullText
    const schema = async () =>
      (await sql<{ name: string }>`select name from sqlite_schema order by name`.execute(store.db)).rows
    const before = await schema()
    const [index = ''] = renewal.indexes('search_index')
    await renewal.begin(store.db as never, 'search_index', index)
    const during = await schema()
    expect(during).not.toEqual(before)
    const ctx = systemContext(server.app.services, 'cli')
    expect(await acquireLock(ctx, rebuildLock, 'elsewhere:a:1:1:x', 60_000)).toBe(true)
    await checkSearch.run(ctx, { due: '' }, {} as never)
    expect(await schema()).toEqual(during)
    await releaseLock(ctx, rebuildLock, 'elsewhere:a:1:1:x')
    await checkSearch.run(ctx, { due: '' }, {} as never)
    expect(await schema()).toEqual(before)
    expect(await store.db.selectFrom('locks').selectAll().where('name', '=', rebuildLock).execute()).toEqual([])
  } finally {
    await server.close()
  }
})

it('the start of a server has removed what a killed rebuild left, and makes no job when nothing is left', {
  timeout: 60_000,
}, async () => {
  const server = await startServer()
  try {
    const { store } = server.app.services
    const { rebuild: renewal } = store.dialect.fullText
    const jobs = () => server.store.db.selectFrom('jobs').select('kind').where('kind', '=', checkSearch.kind).execute()
    await server.app.warmUp()
    expect(await jobs()).toEqual([])
    const [index = ''] = renewal.indexes('search_index')
    await renewal.begin(store.db as never, 'search_index', index)
    await server.app.warmUp()
    await server.app.warmUp()
    expect(await jobs()).toHaveLength(1)
    await server.work()
    expect(await renewal.hasLeftovers(store.db as never, 'search_index')).toBe(false)
  } finally {
    await server.close()
  }
})
