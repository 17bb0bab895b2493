// What an operator can do about the index: doctor finds one that disagrees with the records, and a command makes it anew.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore } from '../../db/open.ts'
import { accord } from '../support/accord.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'accord-search-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('accord search rebuild indexes every record, and accord doctor says when it is needed', async () => {
  const early = await accord(folder, ['search', 'rebuild'])
  expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('Run: accord install')])
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
