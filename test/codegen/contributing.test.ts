// Follows the chapters "Add an event" and "Add an attribute type" of CONTRIBUTING in a copy of the
// repository. The result must compile, and the tests that the chapters name must find it.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { editIn, useCopyOfRepository } from './copy-of-repository.ts'

const run = promisify(execFile)

describe('the chapters of CONTRIBUTING', () => {
  const scratch = useCopyOfRepository('contributing')
  const edit = (path: string, ...changes: [from: RegExp, to: string][]): void => editIn(scratch, path, ...changes)

  /** A lead with another value fires `lead.revalued`, a follow-up event of its update. */
  function addEvent(): void {
    edit(
      'codegen/events.ts',
      [/( {2}won: 'was won',\n)/, "$1  revalued: 'got another value',\n"],
      [/(noun\('leads', 'A lead', \[\.\.\.restorable, )/, "$1'revalued', "],
    )
    edit('src/contract/bare-verbs.ts', [/'restore won /, "'restore won revalued "])
    edit('openapi.yaml', [
      /(\n\s+operationId: updateLead\n(?:.*\n)*?\s+x-events:\n\s+- lead\.update\n)(\s+- )/,
      '$1$2lead.revalued\n$2',
    ])
    edit('src/resources/leads/resource.ts', [
      /followUpEvents: outcomeEvents,/,
      `followUpEvents: (before, after) => [
      ...outcomeEvents(before, after),
      ...(before && before.lead_value !== after.lead_value ? (['lead.revalued'] as const) : []),
    ],`,
    ])
  }

  /** Values of the type `ticker` are texts. */
  function addAttributeType(): void {
    edit('openapi.yaml', [/(\n {4}AttributeType:\n(?:.*\n)*? {8}- url\n)/, '$1        - ticker\n'])
    edit('src/resources/attributes/types/texts.ts', [
      /(export const textareaType)/,
      "export const ticker: ValueType = { ...textType, example: () => 'ACME' }\n\n$1",
    ])
    edit(
      'src/resources/attributes/types.ts',
      [/textareaType, textType, url \}/, 'textareaType, textType, ticker, url }'],
      [/\n {2}url,/, '\n  url,\n  ticker,'],
    )
    edit('src/resources/attributes/attribute-set.ts', [/\n {2}\| 'url'/, "\n  | 'url'\n  | 'ticker'"])
    edit(
      'test/properties/attribute-values.ts',
      [/\n {2}\['url', \{\}\],/, "\n  ['url', {}],\n  ['ticker', {}],"],
      [/\n {6}a_lookup:/, '\n      a_ticker: fc.option(words(20)),\n      a_lookup:'],
    )
    const types =
      'text textarea number price boolean select multiselect checkbox email address phone url ticker lookup datetime date image file subheading'
    const migration = [
      '// Adds the attribute type `ticker`.',
      '',
      "import type { Kysely } from 'kysely'",
      "import type { Dialect } from '../dialect.ts'",
      "import { oneOf, replaceColumn } from '../schema/columns.ts'",
      '',
      'export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>',
      "  replaceColumn(db, dialect, ['attributes', 'type'], oneOf(types, 'text'), [{ columns: ['type', 'id'] }])",
      '',
      `const types = '${types}'.split(' ')`,
      '',
    ]
    writeFileSync(join(scratch, 'db/migrations/0990_ticker_attributes.ts'), migration.join('\n'))
    edit('db/migrate.ts', [
      /\n\](?=\n)/,
      "\n  step('0990_ticker_attributes', () => import('./migrations/0990_ticker_attributes.ts')),\n]",
    ])
  }

  it('lead to an event and a type of attributes that compile and pass their tests', async () => {
    const node = (...args: string[]) => run(process.execPath, args, { cwd: scratch, maxBuffer: 64 * 1024 * 1024 })
    addEvent()
    addAttributeType()
    await node('--import', 'tsx', 'src/cli.ts', 'regenerate')
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', '--project', 'inside']
    const tests = [
      'test/contract/catalogue.test.ts',
      'test/contract/compat.test.ts',
      'test/properties/attributes.test.ts',
    ]
    await node('node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit')
    const { stdout } = await node(...vitest, ...tests)
    expect(stdout).toContain('3 passed')
  }, 600_000)

  it('name the step that was forgotten', async () => {
    edit('codegen/events.ts', [/ {2}revalued: 'got another value',\n/, ''])
    const regenerate = run(process.execPath, ['--import', 'tsx', 'src/cli.ts', 'regenerate'], { cwd: scratch })
    await expect(regenerate).rejects.toThrow(/write the sentence of revalued in predicates/)
    edit('codegen/events.ts', [/( {2}won: 'was won',\n)/, "$1  revalued: 'got another value',\n"])
    edit('src/resources/attributes/types.ts', [/\n {2}ticker,/, ''])
    const tsc = run(process.execPath, ['node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit'], {
      cwd: scratch,
    })
    const error = (await tsc.catch((cause: { stdout: string }) => cause)) as { stdout: string }
    expect(error.stdout).toMatch(/attributes\/types\.ts.*'ticker' is missing/)
  }, 300_000)
})
