// Adds a resource with its command, and a field with the steps of CONTRIBUTING, in a copy of the
// repository. The result must compile, pass the house rules and work over HTTP.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { choiceOf, namesOf } from '../../codegen/new-resource/names.ts'
import { editIn, useCopyOfRepository } from './copy-of-repository.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** Adds the field `shelf` to locations by the steps in "Add a stored field" of CONTRIBUTING. */
function addShelf(scratch: string): void {
  const edit = (path: string, ...changes: [from: RegExp, to: string][]): void => editIn(scratch, path, ...changes)
  const field = (indent: string): string =>
    ['shelf:', '  description: Where it is.', '  x-since: 1.1.0', '  type: [string, "null"]', '  maxLength: 40']
      .map((line) => `${indent}${line}\n`)
      .join('')
  const stored = (schema: string): [RegExp, string][] => [
    [new RegExp(`(\\n {4}${schema}:\\n[^]*?required: \\[id, name)`), '$1, shelf'],
    [new RegExp(`(\\n {4}${schema}:\\n[^]*?)( {8}warehouse_id:)`), `$1${field('        ')}$2`],
    [new RegExp(`(\\n {4}${schema}:\\n[^]*?name: A-12\\n)`), '$1          shelf: top\n'],
  ]
  const sent = (schema: string): [RegExp, string] => [
    new RegExp(`(\\n {4}${schema}:\\n[^]*?)( {8}warehouse_id:)`),
    `$1${field('        ')}$2`,
  ]
  edit(
    'openapi.yaml',
    ...stored('StorageLocation'),
    ...stored('IncludedStorageLocation'),
    sent('LocationCreate'),
    sent('LocationUpdate'),
  )
  const migration = [
    '// Locations say on which shelf they are.',
    '',
    "import type { Kysely } from 'kysely'",
    "import type { Dialect } from '../dialect.ts'",
    "import { addColumn, nullable, text } from '../schema/columns.ts'",
    '',
    'export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>',
    "  addColumn(db, dialect, 'warehouse_locations', 'shelf', nullable(text()))",
    '',
  ]
  writeFileSync(join(scratch, 'db/migrations/0990_location_shelf.ts'), migration.join('\n'))
  edit('db/migrate.ts', [
    /\n\](?=\n)/,
    "\n  step('0990_location_shelf', () => import('./migrations/0990_location_shelf.ts')),\n]",
  ])
  edit(
    'src/resources/locations/resource.ts',
    [/async \(\{ name, /, 'async ({ name, shelf, '],
    [/columns: \{ name, /, 'columns: { name, shelf, '],
    [/name: row\.name,\n/, 'name: row.name,\n    shelf: row.shelf,\n'],
  )
}

/** Step 4: the test of the field, with valid values, null and a value that is too long. */
const shelfTest = `// The shelf of a location.
import { expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const { admin } = useSharedServer()

it('is stored, shown, changed and removed', async () => {
  const address = { address: '1 Way', country: 'GB', city: 'London', postcode: 'W1' }
  const emails = [{ value: 'ann@example.com' }]
  const warehouse = { name: 'One', contact_name: 'Ann', contact_emails: emails, contact_address: address }
  const { body: kept } = await admin.post('/settings/warehouses', warehouse)
  expect(kept.errors).toBeUndefined()
  const sent = { name: 'A-1', shelf: 'top', warehouse_id: kept.data.id }
  const { body: created } = await admin.post('/settings/locations', sent)
  const path = '/settings/locations/' + created.data.id
  expect((await admin.get(path)).body.data.shelf).toBe('top')
  expect((await admin.put(path, { shelf: 'low' })).body.data.shelf).toBe('low')
  expect((await admin.put(path, { name: 'A-2' })).body.data.shelf).toBe('low')
  expect((await admin.put(path, { shelf: null })).body.data.shelf).toBeNull()
  expect((await admin.put(path, { shelf: 'x'.repeat(41) })).status).toBe(422)
})
`

const wishes = ['--reference', 'warehouse', '--one-of', 'state=open,sent']

/** The test of what the wishes add. */
const wishesTest = `// The reference and the fixed values of a delivery note.
import { expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const { admin } = useSharedServer()

it('are stored, shown, filtered and checked', async () => {
  const { body: first } = await admin.post('/delivery-notes', { name: 'First' })
  expect(first.data).toMatchObject({ warehouse_id: null, state: 'open' })
  const { body: other } = await admin.post('/delivery-notes', { name: 'Other', state: 'sent' })
  expect((await admin.get('/delivery-notes?state=sent')).body.data).toEqual([other.data])
  expect((await admin.get('/delivery-notes?state[not]=sent')).body.data).toEqual([first.data])
  expect((await admin.get('/delivery-notes?warehouse_id=999')).body.data).toEqual([])
  const refused = await admin.post('/delivery-notes', { name: 'Third', state: 'lost', warehouse_id: 999 })
  expect(refused.status).toBe(422)
  expect(refused.body.errors.state).toEqual(['Must be one of open, sent.'])
  const lost = await admin.post('/delivery-notes', { name: 'Third', warehouse_id: 999 })
  expect(lost.body.errors.warehouse_id).toEqual(['No warehouse has id 999.'])
})
`

describe('npm run new-resource, and a field by the steps of CONTRIBUTING', () => {
  const scratch = useCopyOfRepository('new-resource')

  it('compile, pass their tests and the house test, and register a resource in one line', async () => {
    const node = (...args: string[]) => run(process.execPath, args, { cwd: scratch })
    const { stdout } = await node(
      '--import',
      'tsx',
      'codegen/new-resource/new-resource.ts',
      'delivery-notes',
      ...wishes,
    )
    expect(stdout).toContain('wrote src/contract/operations.gen.ts')
    const lines = (path: string, from: string): string[] => readFileSync(join(from, path), 'utf8').split('\n')
    const known = new Set(lines('src/resources.ts', root))
    expect(lines('src/resources.ts', scratch).filter((line) => !known.has(line))).toEqual([
      "export { deliveryNotes } from './resources/delivery-notes/resource.ts'",
    ])
    addShelf(scratch)
    await node('--import', 'tsx', 'src/cli.ts', 'regenerate')
    writeFileSync(join(scratch, 'test/resources/locations.shelf.test.ts'), shelfTest)
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', '--project', 'inside']
    writeFileSync(join(scratch, 'test/resources/delivery-notes.wishes.test.ts'), wishesTest)
    await Promise.all([
      node('node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit'),
      node(
        ...vitest,
        'test/resources/delivery-notes.test.ts',
        'test/resources/delivery-notes.wishes.test.ts',
        'test/resources/locations.shelf.test.ts',
        'test/contract/compat.test.ts',
        'test/contract/house.test.ts',
        'test/contract/imports.test.ts',
        'test/contract/stale-versions.test.ts',
        'test/contract/order.test.ts',
        'test/contract/drift.test.ts',
      ),
    ])
    const files = ['src/resources/delivery-notes', 'test/resources', 'test/contract', 'db/migrations']
    await node('node_modules/@biomejs/biome/bin/biome', 'check', '--vcs-enabled=false', ...files)
  }, 600_000)
})

describe('choiceOf', () => {
  it.each(['state', 'state=open', 'State=open,sent', 'state=open,'])('refuses %j', (text) => {
    expect(() => choiceOf(text, namesOf('parcels'))).toThrow('write its name and at least two values')
  })
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
