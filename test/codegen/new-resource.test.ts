// A new resource takes one command: scaffolded in a copy of the repository, it compiles, keeps the
// house rules and works over HTTP (its generated test calls it).
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { namesOf } from '../../codegen/new-resource/names.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const copied = [
  'src',
  'db',
  'codegen',
  'test',
  'openapi.yaml',
  'package.json',
  'tsconfig.json',
  'biome.json',
  '.gitignore',
]
const run = promisify(execFile)

describe('npm run new-resource', () => {
  let scratch: string

  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'accord-new-resource-'))
    for (const path of copied) cpSync(join(root, path), join(scratch, path), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'))
  })
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  it('scaffolds a resource that compiles, passes its own test and the house test, and is registered in one line', async () => {
    const node = (...args: string[]) => run(process.execPath, args, { cwd: scratch })
    const { stdout } = await node('--import', 'tsx', 'codegen/new-resource/new-resource.ts', 'delivery-notes')
    expect(stdout).toContain('wrote src/contract/operations.gen.ts')
    const lines = (path: string, from: string): string[] => readFileSync(join(from, path), 'utf8').split('\n')
    const known = new Set(lines('src/resources.ts', root))
    expect(lines('src/resources.ts', scratch).filter((line) => !known.has(line))).toEqual([
      "export { deliveryNotes } from './resources/delivery-notes/resource.ts'",
    ])
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', '--project', 'inside']
    await Promise.all([
      node('node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit'),
      node(...vitest, 'test/resources/delivery-notes.test.ts', 'test/contract/house.test.ts'),
    ])
    const files = ['src/resources/delivery-notes', 'test/resources', 'test/contract', 'db/migrations']
    await node('node_modules/@biomejs/biome/bin/biome', 'check', '--vcs-enabled=false', ...files)
  }, 240_000)
})

describe('namesOf', () => {
  it('gives every spelling of a name', () => {
    expect(namesOf('stock-entries')).toEqual({
      slug: 'stock-entries',
      table: 'stock_entries',
      camel: 'stockEntries',
      plural: 'StockEntries',
      single: 'StockEntry',
      noun: 'stock entry',
      nouns: 'stock entries',
      tag: 'Stock Entries',
      event: 'stock_entry',
      key: 'stock_entries',
    })
  })

  it.each(['Parcels', 'parcel', 'my_parcels', '../parcels', ''])('refuses %j', (slug) => {
    expect(() => namesOf(slug)).toThrow('is not a name')
  })
})
