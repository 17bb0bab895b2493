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
    expect(code).toBe(0)
    expect(stdout.split('\n').slice(1, -1)).toEqual([
      'separated by ;, encoding utf-8, dates as day, month, year, decimals after ,',
      '  Name          name                     Ada, Ben',
      '  E-Mail        emails                   ada@example.com, ben@example.com',
      '  Shoe size     shoe_size (new number)   38,5, 44',
      '  Member since  member_since (new date)  31.12.2019, 1.2.2020',
      '  VIP           vip (new boolean)        yes, no',
      '  Remarks       remarks (new text)       likes tea',
      '  Postal code   postal_code (new text)   01234, 10115',
      'Validating 2/2',
      'Would create the custom attributes shoe_size, member_since, vip, remarks, postal_code.',
      'Would create 2, update 0, leave 0 as they are, delete 0, skip 0.',
      'Nothing was imported (--dry-run).',
    ])
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
    expect(done.stdout).toMatch(
      /Created the custom attributes shoe_size, .*, which an undo keeps\.\n(?:Note: .*\n)?Undo: POST http.*\/imports\/\d+\/undo\n$/,
    )
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
    expect([again.code, again.stdout]).toEqual([0, expect.not.stringContaining('new ')])
    expect(await attributes()).toHaveLength(4)
  })

  it.each([true, false])('a refused file creates no attributes: dry run %s', async (dryRun) => {
    const before = [await attributes(), await people()]
    for (const rows of [
      'A;a@x.example;31.01.2024\nB;b@x.example;31.02.2024\n',
      'C;c@x.example;1.1.2024\nD;d;2.1.2024\n',
    ]) {
      const done = await run(fileOf(`Name;E-Mail;Hired\n${rows}`), { yes: true, createAttributes: true, dryRun })
      expect([done.code, done.stderr]).toEqual([
        1,
        expect.stringMatching(
          /^The file cannot be imported; nothing was changed\.\n {2}row 3, (Hired: Must be a date|E-Mail)/,
        ),
      ])
    }
    const plain = await run(fileOf('Name;E-Mail;Hired on\nA;a@x.example;31.01.2024\n'), {
      createAttributes: true,
      dryRun,
    })
    expect([plain.code, plain.stderr]).toEqual([
      1,
      'The file cannot be imported; nothing was changed.\n' +
        '  Unknown columns: Name, E-Mail, Hired on. With --yes the file is imported as shown; --map changes a column.\n',
    ])
    expect([await attributes(), await people()]).toEqual(before)
  })

  it('codes differ from the fields of the type and from reserved words', async () => {
    const file = fileOf('Name,E-Mail,Custom attributes,Constructor,Merged into\nA,code@x.example,a,b,c\n')
    const { code, stdout } = await run(file, { yes: true, createAttributes: true })
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/attributes custom_attributes_2, constructor_2, merged_\w+,/),
    ])
    await folder.store.db.deleteFrom('attributes').where('code', 'like', '%\\_2').execute()
    await folder.store.db.deleteFrom('attributes').where('code', 'like', 'merged%').execute()
  })

  it('columns with the same words get an attribute each, and repeated ones are left out', async () => {
    const file = fileOf('Name;E-Mail;Foo Bar;foo-bar;Kind;Kind;"Line\none"\nA;foo@x.example;1x;2x;3x;4x;"5\nx"\n')
    const { code, stdout } = await run(file, { yes: true, createAttributes: true, dryRun: true })
    expect([code, stdout]).toEqual([0, expect.stringContaining('custom attributes foo_bar, foo_bar_2, line_one.\n')])
    expect(stdout).toMatch(/\n {2}Foo Bar +foo_bar \(new text\) +1x\n {2}foo-bar +foo_bar_2 \(new text\) +2x\n/)
    expect(stdout).toMatch(/\n {2}Kind +\(left out\) +3x\n {2}Kind +\(left out\) +4x\n/)
    expect(stdout).toMatch(/\n {2}Line ⏎ one +line_one \(new textarea\) +5 ⏎ x\n/)
  })

  it('a dry run counts what it would do, also what it would replace', async () => {
    const file = fileOf(
      'name,emails,job_title\nAda,ada@example.com,Poet\nBen,ben@example.com,\nEve,eve@example.com,Spy\n',
    )
    await run(fileOf('name,emails,job_title\nAda,ada@example.com,Engineer\n'), {})
    const { code, stdout } = await run(file, { dryRun: true })
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(
        'Would create 1, update 1, leave 1 as they are, delete 0, skip 0.\n' +
          '  job_title: 1 value would be replaced, first by row 2.\nNothing was imported',
      ),
    ])
  })

  it('sentences name the options of the command, which it has', async () => {
    const file = () => fileOf('emails,job_title\nfay@example.com,Spy\n')
    const refused = await run(file(), { dryRun: true })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('With --missing-names fill, the')])
    expect((await run(file(), { dryRun: true, missingNames: 'fill' })).code).toBe(0)
    const open = await run(fileOf('sku,name,price\na,A,"1,234"\n'), { type: 'products', dryRun: true, yes: true })
    expect(open.stdout).toContain('which character separates decimals; set --decimal.')
  })

  it('a date format that is given makes dates of a column that leaves it open', async () => {
    const file = fileOf('Name,E-Mail,Begun\nA,a@x.example,01/02/2024\n')
    const options = { yes: true, createAttributes: true, dryRun: true }
    expect((await run(file, options)).stdout).toContain('begun (new text)')
    expect((await run(file, { ...options, dateFormat: 'mdy' })).stdout).toContain('begun (new date)')
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
