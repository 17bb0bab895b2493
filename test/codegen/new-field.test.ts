// Adds fields with `npm run new-field` in a copy of the repository. The result must compile, pass
// the house rules and the gate, and work over HTTP.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { fieldOf } from '../../codegen/new-field/field.ts'
import { newField } from '../../codegen/new-field/new-field.ts'
import { useCopyOfRepository } from './copy-of-repository.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

const roundTrip = `// The fields that were added.
import { expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const { admin } = useSharedServer()

it('are stored, shown, filtered, sorted and exported', async () => {
  const make = given(admin)
  const sent = { probability: 60 } as object
  const [likely, unknown] = [await make.lead(sent), await make.lead()]
  expect((await admin.get('/leads/' + likely.id)).body.data.probability).toBe(60)
  const ids = async (query: string) => (await admin.get('/leads?' + query)).body.data.map(({ id }: { id: number }) => id)
  expect(await ids('probability[gte]=50')).toEqual([likely.id])
  expect(await ids('probability[null]=true')).toEqual([unknown.id])
  expect(await ids('sort=probability')).toEqual([likely.id, unknown.id])
  expect((await admin.put('/leads/' + likely.id, { probability: 101 })).status).toBe(422)
  expect((await admin.put('/leads/' + likely.id, { probability: null })).body.data.probability).toBeNull()
  const csv = (await admin.get('/leads/export?format=csv')).text
  expect(csv.split('\\n')[0]).toContain('probability')
  const sample = await admin.get('/settings/data-transfer/import-samples/leads')
  expect(sample.text).toContain('probability')

  const heavy = await make.tag({ name: 'Heavy', weight: 2.5, kind: 'low', is_old: true, note: 'Wood' } as object)
  const { body } = await admin.get('/tags/' + heavy.id)
  expect(body.data).toMatchObject({ weight: 2.5, kind: 'low', is_old: true, note: 'Wood' })
  for (const query of ['weight[gt]=2', 'kind=low', 'is_old=true', 'note=wood'])
    expect((await admin.get('/tags?' + query)).body.data).toHaveLength(1)
})
`

describe('npm run new-field', () => {
  const scratch = useCopyOfRepository('new-field')

  it('writes fields of every type that compile, pass the house rules and work', async () => {
    const node = (...args: string[]) => run(process.execPath, args, { cwd: scratch })
    const add = (...args: string[]) => node('--import', 'tsx', 'codegen/new-field/new-field.ts', ...args)
    // The command regenerates and formats; one of the fields does so for all.
    const fields = ['weight decimal', 'kind enum --one-of low,high', 'is_old boolean', 'note string --max-length 40']
    for (const field of [...fields, 'remarks text', 'bought date', 'seen_at datetime'])
      expect(newField(scratch, 'tags', fieldOf(field.split(' '))).left).toEqual([])
    const { stdout } = await add('leads', 'probability', 'integer', '--min', '0', '--max', '100')
    expect(stdout).not.toContain('by hand')
    writeFileSync(join(scratch, 'test/resources/leads.probability.test.ts'), roundTrip)
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', '--project', 'inside']
    await Promise.all([
      node('node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit'),
      node(...vitest, 'test/resources/leads.probability.test.ts', 'test/contract/compat.test.ts'),
    ])
    await node('node_modules/@biomejs/biome/bin/biome', 'lint', '--vcs-enabled=false', 'src/resources', 'db/migrations')
    expect(readFileSync(join(scratch, 'src/resources/leads/resource.ts'), 'utf8')).toContain('body.probability')
  }, 600_000)

  it('refuses a field or resource that it cannot add', () => {
    const refused = (slug: string, ...args: string[]) => expect(() => newField(root, slug, fieldOf(args)))
    refused('leads', 'title', 'string').toThrow('Lead has a property title already.')
    refused('lead', 'size', 'integer').toThrow('no list at …/lead')
    refused('leads', 'Size', 'integer').toThrow('"Size" is not a name of a field')
    refused('leads', 'size', 'number').toThrow('"number" is not a type. Types: string, text')
    refused('leads', 'size', 'integer', '--max-length', '4').toThrow('integer has no option --max-length')
    refused('leads', 'size', 'integer', '--min', '5', '--max', '4').toThrow('--min 5 is above --max 4.')
    refused('leads', 'size', 'enum').toThrow('--one-of low,high')
  })
})
