// The registry of personal data is complete: a new table or a new column with texts must be in it.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { columnsOf, personalData } from '../../src/resources/persons/erase/personal-data.ts'

const generated = readFileSync(new URL('../../db/tables.gen.ts', import.meta.url), 'utf8')

/** Times, dates and types of records name no person. */
const isPlain = (column: string): boolean =>
  /_(at|from|to|until|start|since|date|type)$|^(date|at|sunset)$/.test(column)

const tables = [...generated.matchAll(/^ {2}(\w+): (\w+Table)$/gm)].map(([, table = '', type = '']) => {
  const body = new RegExp(`interface ${type} \\{([^}]*)\\}`).exec(generated)?.[1] ?? ''
  const columns = [...body.matchAll(/^ {2}"?(\w+)"?: (?:Generated<)?string(?: \| null)?>?$/gm)].map(
    ([, name = '']) => name,
  )
  return { table, columns }
})

it('finds the tables', () => {
  expect(tables.length).toBeGreaterThan(90)
  expect(tables.find(({ table }) => table === 'leads')?.columns).toContain('title')
})

it.each(tables)('says where texts about persons are in $table', ({ table, columns }) => {
  const rules = personalData[table as keyof typeof personalData]
  expect(rules, `List ${table} in src/resources/persons/erase/personal-data.ts.`).toBeDefined()
  const listed = [...columnsOf(rules.texts), ...columnsOf(rules.other)]
  const missing = columns.filter((column) => !isPlain(column) && !listed.includes(column))
  expect(missing, `Say whether columns of ${table} have personal data: texts or other.`).toEqual([])
})
