// What `accord import` says when it cannot ask a question, and the custom attributes that it
// makes of columns that fill no field.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandError, reportFailure } from '../../src/commands/command-error.ts'
import { importCommand } from '../../src/commands/import.ts'
import { Problem } from '../../src/contract/output/problems.ts'
import { type Folder, installedFolder, said } from '../support/installed.ts'

let folder: Folder
let place: string
beforeAll(async () => {
  folder = await installedFolder()
  place = mkdtempSync(join(tmpdir(), 'accord-import-'))
}, 60_000)
afterAll(async () => {
  await folder.close()
  rmSync(place, { recursive: true, force: true })
})

let made = 0
function fileOf(text: string | Buffer): string {
  const path = join(place, `file-${++made}.csv`)
  writeFileSync(path, text)
  return path
}

const run = (path: string, options: object = {}) =>
  said(() =>
    importCommand(folder.config, path, { type: 'persons', action: 'append', allowedErrors: '0', ...options } as never),
  )
const attributes = () =>
  folder.store.db
    .selectFrom('attributes')
    .select(['code', 'name', 'type', 'entity_type'])
    .where('is_user_defined', '=', 1)
    .orderBy('id')
    .execute()
const people = () => folder.store.db.selectFrom('persons').selectAll().orderBy('id').execute()

const customers = '\ufeffName;E-Mail;Shoe size;Member since;VIP;Remarks;Postal code\n'
const rows = [
  'Ada;ada@example.com;38,5;31.12.2019;yes;likes tea;01234\n',
  'Ben;ben@example.com;44;1.2.2020;no;;10115\n',
].join('')

describe('without a terminal', () => {
  it('a file is described before anything is done, and how to go on', async () => {
    const { code, stdout } = await run(fileOf(`${customers}${rows}`))
    expect(code).toBe(1)
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      expect.stringMatching(/^Import \d+: file-\d+\.csv, persons$/),
      expect.stringContaining('separated by ;, encoding utf-8'),
      expect.stringMatching(/^ {2}Name +name +Ada, Ben$/),
    ])
    expect(stdout).toContain('Left out: Shoe size, Member since, VIP, Remarks, Postal code. --map Header=field')
    expect(stdout).toContain('This needs --yes.')
    expect(stdout).not.toContain('Created')
  })

  it('a dry run tells which attributes would be created, and changes nothing', async () => {
    const before = [await attributes(), await people()]
    const { code, stdout } = await run(fileOf(`${customers}${rows}`), {
      yes: true,
      createAttributes: true,
      dryRun: true,
    })
    expect([code, stdout]).toEqual([0, expect.stringContaining('Nothing was imported (--dry-run).')])
    expect(stdout).toContain(
      'Would be created:\n  Shoe size: custom attribute shoe_size of the type number\n' +
        '  Member since: custom attribute member_since of the type date\n' +
        '  VIP: custom attribute vip of the type boolean\n  Remarks: custom attribute remarks of the type text\n' +
        '  Postal code: custom attribute postal_code of the type text\n',
    )
    expect([await attributes(), await people()]).toEqual(before)
    expect(await folder.store.db.selectFrom('imports').select('id').where('state', '=', 'validated').execute()).toEqual(
      [],
    )
  })

  it('columns become attributes, whose values are read, and a second file reuses them', async () => {
    const done = await run(fileOf(`${customers}${rows}`), {
      ...{ yes: true, createAttributes: true, map: ['Postal code='] },
    })
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(await attributes()).toEqual([
      { code: 'shoe_size', name: 'Shoe size', type: 'number', entity_type: 'persons' },
      { code: 'member_since', name: 'Member since', type: 'date', entity_type: 'persons' },
      { code: 'vip', name: 'VIP', type: 'boolean', entity_type: 'persons' },
      { code: 'remarks', name: 'Remarks', type: 'text', entity_type: 'persons' },
    ])
    const values = JSON.stringify(await people())
    for (const value of ['38.5', '2019-12-31', 'likes tea']) expect(values).toContain(value)
    expect(values).not.toContain('01234')
    const again = await run(fileOf('name,emails,VIP,Shoe size\nCem,cem@example.com,yes,40\n'), {
      ...{ yes: true, createAttributes: true },
    })
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringContaining('No column is left for a custom attribute.'),
    ])
    expect(await attributes()).toHaveLength(4)
  })

  it('attributes need the permission to create them', async () => {
    await folder.store.db.updateTable('roles').set({ permission_type: 'custom', permissions: '[]' }).execute()
    const { code, stderr } = await run(fileOf(`${customers}${rows}`), { yes: true, createAttributes: true })
    await folder.store.db.updateTable('roles').set({ permission_type: 'all' }).execute()
    expect([code, stderr]).toEqual([
      1,
      '--create-attributes needs the permission settings.automation.attributes.create. Name another user with --as.\n',
    ])
  })
})

describe('a failure with --json', () => {
  it.each([
    [new CommandError('The file x does not exist.'), { error: 'The file x does not exist.' }],
    [
      new Problem('validation_failed', undefined, { errors: { name: ['The field is required.'] } }),
      {
        error: 'name: The field is required.',
        code: 'validation_failed',
        errors: { name: ['The field is required.'] },
      },
    ],
  ])('is one line of JSON: %s', async (failure, told) => {
    const { stderr } = await said(async () => reportFailure(failure, true))
    expect(
      stderr
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([told])
  })
})
