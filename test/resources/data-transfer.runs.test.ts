// Validating and running imports: each row is like an API call of the import's user, a batch is
// stored completely or not at all, and an interrupted import continues without losing or repeating
// rows.
import { describe, expect, it, vi } from 'vitest'
import { maxCrashes } from '../../src/jobs/job-runner.ts'
import { newOwnerId } from '../../src/kernel/runtime/process-identity.ts'
import { type Emitter, Veto } from '../../src/kernel/write/events.ts'
import { processRows } from '../../src/resources/data-transfer/run/process-rows.ts'
import type { Caller } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { isHostile } from '../support/hostile.ts'
import { csvOf, importing, path } from '../support/importing.ts'
import { someone } from '../support/people.ts'
import { countTurns } from '../support/turns.ts'
import { useServer } from '../support/using.ts'

/** The SKUs that a listener refuses. */
const refused = new Set<unknown>()
const refuse = (events: Emitter) =>
  events.on('product.create.before', ({ input }) => {
    if (refused.has((input as { sku?: string }).sku)) throw new Veto('Not this one.')
  })
const refuseLinks = (events: Emitter) =>
  events.on('organizations.tag.create.before', () => {
    if (refused.has('links')) throw new Veto('No tags.')
  })
const server = useServer({ extensions: [refuse, refuseLinks] })

const using = () => importing(server.admin)
const all = async (at: string) => (await server.admin.get(`${at}?per_page=100&sort=id`)).body.data
const count = async (at: string): Promise<number> => (await server.admin.get(`${at}?per_page=1`)).body.meta.total
const shown = async (id: number) => (await server.admin.get(`${path}/${id}`)).body.data
/** Returns the names of events, without those of the import and its file. */
const eventsOfRows = () => server.events().filter((name) => !/^(data_transfer|files)\./.test(name))
const numbered = (from: number, to: number, row: (n: number) => (string | number)[]) =>
  Array.from({ length: to - from + 1 }, (_, index) => row(from + index))

describe('importing persons', () => {
  it('creates, and changes whom any of the addresses belongs to; one pair of events each', async () => {
    const make = given(server.admin)
    await make.person({
      name: 'Ada',
      emails: [{ value: 'ada@example.com' }, { value: 'Ada@home.example' }],
      job_title: 'Engineer',
    })
    const { id } = await using().record(
      'persons',
      csvOf([
        ['name', 'emails', 'contact_numbers', 'organization_name', 'tags'],
        ['', 'ADA@HOME.example:home|ada@example.com', '', '', ''],
        ['Grace', 'grace@example.com', '+1 202 1:desk', 'Navy', 'VIP'],
      ]),
    )
    await using().post(id, 'validate')
    server.events()
    const done = await using().post(id, 'start')
    expect(done).toMatchObject({ state: 'completed', progress: 100, processed_rows_count: 2, errors: [] })
    expect(done.summary).toEqual({ created: 1, updated: 1, deleted: 0, skipped: 0 })
    expect(eventsOfRows()).toEqual([
      'contacts.person.update.before',
      'settings.tag.create.before',
      'contacts.organization.create.before',
      'contacts.person.create.before',
      'persons.tag.create.before',
      'contacts.person.update.after',
      'settings.tag.create.after',
      'contacts.organization.create.after',
      'contacts.person.create.after',
      'persons.tag.create.after',
    ])
    const [ada, grace] = await all('/contacts/persons')
    expect(ada).toMatchObject({
      name: 'Ada',
      job_title: 'Engineer',
      emails: [{ value: 'ada@example.com' }, { value: 'Ada@home.example', label: 'work' }],
    })
    expect(grace).toMatchObject({
      organization: { name: 'Navy' },
      tags: [{ name: 'VIP' }],
      contact_numbers: [{ value: '+1 202 1', label: 'desk' }],
    })
    const { body } = await server.admin.get(`/contacts/persons/${grace.id}/history`)
    expect(body.data.at(-1)).toMatchObject({ origin: 'import', actor: { id: 1 } })
  })

  it('adds to the addresses and numbers of persons it finds, and replaces them only when told to', async () => {
    const ada = await given(server.admin).person({
      name: 'Ada',
      emails: [{ value: 'ada@example.com' }],
      contact_numbers: [{ value: '+1 202 555 0100', label: 'desk' }],
    })
    const table = (number: string) =>
      csvOf([
        ['emails', 'contact_numbers'],
        ['ADA@example.com|new@example.com:home', number],
      ])
    const values = async () => {
      const { emails, contact_numbers } = (await server.admin.get(`/contacts/persons/${ada.id}`)).body.data
      return [emails, contact_numbers].map((list) => list.map(({ value }: { value: string }) => value))
    }
    const added = await using().run('persons', table('1 (202) 555-0100|(212) 555-0143 x12'))
    expect([added.replace_lists, added.summary.updated]).toEqual([false, 1])
    expect(await values()).toEqual([
      ['ada@example.com', 'new@example.com'],
      ['+1 202 555 0100', '(212) 555-0143 x12'],
    ])
    await using().run('persons', table('NULL'))
    expect((await values())[1]).toEqual([])
    await using().run('persons', table('555 1234'), { replace_lists: true })
    expect(await values()).toEqual([['ADA@example.com', 'new@example.com'], ['555 1234']])
    const many = Array.from({ length: 19 }, (_, n) => `n${n}@example.com`).join('|')
    const { errors } = await using().validate('persons', csvOf([['emails'], [`ada@example.com|${many}`]]))
    expect(errors).toEqual([
      { row: 2, column: 'emails', code: 'validation_failed', message: 'The person would have more than 20 entries.' },
    ])
  })

  it('takes persons without an address, and finds them by number and name', async () => {
    const table = csvOf([
      ['name', 'contact_numbers', 'job_title'],
      ['Ada', '(212) 555-0143 x12', ''],
      ['Bob', '212.555.0143 ext. 12', ''],
      ['ada', '2125550143 x12', 'Countess'],
      ['', '212-555-0143', 'Nadia'],
      ['Eve', '', ''],
    ])
    const { id, errors: found } = await using().validate('persons', table)
    const shared = {
      row: 5,
      column: 'contact_numbers',
      code: 'unique_violation',
      message: 'Several persons have this number; say which by an e-mail address.',
    }
    expect(found).toEqual([shared])
    const { summary, errors } = await using().post(id, 'start')
    expect([summary, errors]).toEqual([{ created: 3, updated: 1, deleted: 0, skipped: 1 }, [shared]])
    const [ada] = await all('/contacts/persons')
    expect(ada).toMatchObject({ name: 'ada', emails: [], job_title: 'Countess' })
    expect(ada.contact_numbers).toEqual([{ value: '(212) 555-0143 x12', label: 'work' }])
  })

  it('reads every number that an export has written', async () => {
    const written = ['=1+2345', 'tel:+1|202|555', '[1]:23', '["123"]', 'x]123', '-555-01,00', '"555"']
    for (const value of written)
      await server.admin.post('/contacts/persons', { name: `N ${value}`, contact_numbers: [{ value }] })
    const table = (await server.admin.get('/contacts/persons/export?format=csv&sort=id')).text
    for (const { id } of await all('/contacts/persons'))
      await server.admin.put(`/contacts/persons/${id}`, { contact_numbers: [] })
    // Without telephone numbers, no row matches an existing person, so each row creates one.
    expect((await using().run('persons', table)).summary.created).toBe(written.length)
    const values = (await all('/contacts/persons')).flatMap((person: any) => person.contact_numbers)
    expect(values).toEqual(written.map((value) => ({ value, label: 'work' })))
  })

  it('finds by a number whom a row of an earlier batch makes', async () => {
    const rows = numbered(2, 131, (row) => [`Person ${row}`, `+1 202 ${1000 + row}`, ''])
    rows[119] = ['', '1 (202) 1005', 'Analyst']
    const { id, errors } = await using().validate('persons', csvOf([['name', 'contact_numbers', 'job_title'], ...rows]))
    expect(errors).toEqual([])
    expect((await using().post(id, 'start')).summary).toEqual({ created: 129, updated: 1, deleted: 0, skipped: 0 })
  })

  it('refuses addresses of several persons, and those of a person out of sight', async () => {
    const make = given(server.admin)
    const seller = await someone(
      server,
      [
        'settings.data_transfer.imports',
        'settings.data_transfer.imports.create',
        'settings.data_transfer.imports.import',
        'contacts.persons.create',
        'contacts.persons.edit',
        'contacts.persons.view',
        'contacts.persons',
      ],
      { view_permission: 'individual' },
    )
    await make.person({ emails: [{ value: 'a@example.com' }], user_id: seller.id })
    await make.person({ emails: [{ value: 'b@example.com' }], user_id: seller.id })
    await make.person({ emails: [{ value: 'hidden@example.com' }] })
    const { errors, summary } = await importing(seller.caller).run(
      'persons',
      csvOf([
        ['name', 'emails'],
        ['Both', 'a@example.com|b@example.com'],
        ['Hidden', 'hidden@example.com'],
        ['Seen', 'a@example.com'],
      ]),
    )
    expect(errors).toEqual([
      { row: 2, column: 'emails', code: 'unique_violation', message: 'These addresses belong to several persons.' },
      { row: 3, column: 'emails', code: 'unique_violation', message: 'Another person has this value.' },
    ])
    expect(summary).toEqual({ created: 0, updated: 1, deleted: 0, skipped: 2 })
  })
})

describe('importing leads', () => {
  it('changes those with an id and makes all others, with person, products, tags, and dates of the past', async () => {
    const make = given(server.admin)
    const ada = await make.person({ emails: [{ value: 'ada@example.com' }] })
    const seat = await make.product({ price: 10 })
    const old = await make.lead({ title: 'Old', lead_value: 5 })
    const done = await using().run(
      'leads',
      csvOf([
        ['id', 'title', 'lead_value', 'person_email', 'product', 'expected_close_date', 'tags'],
        [old.id, 'Renamed', '', '', '', '', ''],
        ['', 'Seats', '20.50', 'ADA@example.com', `id=${seat.id},quantity=2`, '2020-01-01', 'VIP|Key'],
        ['', 'Nadia', '1', 'none@example.com', '', '', ''],
        ['99', 'Gone', '1', '', '', '', ''],
        ['', '', '1', '', `id=${seat.id};2`, '', ''],
      ]),
    )
    expect(done.summary).toEqual({ created: 1, updated: 1, deleted: 0, skipped: 3 })
    expect(done.errors).toEqual(
      [
        { row: 4, column: 'person_email', code: 'validation_failed', message: 'No person has this e-mail address.' },
        { row: 5, column: 'id', code: 'not_found', message: 'No lead has id 99.' },
        { row: 6, column: 'product', code: 'validation_failed', message: 'Must match.' },
        { row: 6, column: 'title', code: 'validation_failed', message: 'The field is required.' },
      ].map((error) => (error.row === 6 ? { ...error, message: expect.any(String) } : error)),
    )
    const [renamed, seats] = (await all('/leads')).slice(-2)
    expect(renamed).toMatchObject({ title: 'Renamed', lead_value: 5 })
    expect(seats).toMatchObject({
      person_id: ada.id,
      lead_value: 20.5,
      expected_close_date: '2020-01-01',
      products_amount: 20,
    })
    expect(seats.tags.map(({ name }: any) => name)).toEqual(['Key', 'VIP'])
  })
})

describe('importing what is to be deleted', () => {
  it('finds persons by the first address, organizations by name, products by SKU, leads by id', async () => {
    const make = given(server.admin)
    await make.person({ emails: [{ value: 'ada@example.com' }] })
    await make.organization({ name: 'Acme' })
    await make.product({ sku: 'p-1' })
    const lead = await make.lead({})
    const before = await count('/leads')
    const run = (type: string, table: string) => using().run(type, table, { action: 'delete' })
    const none = { created: 0, updated: 0, skipped: 0 }
    expect((await run('persons', 'emails,name\nADA@example.com|other@example.com,\n')).summary).toEqual({
      ...none,
      deleted: 1,
    })
    expect((await run('organizations', 'name\nACME\n')).summary).toEqual({ ...none, deleted: 1 })
    expect((await run('products', 'sku,price\nP-1,nonsense\n')).summary).toEqual({ ...none, deleted: 1 })
    server.events()
    expect((await run('leads', `id\n${lead.id}\n${lead.id}\n`)).errors).toEqual([
      { row: 3, column: 'id', code: 'not_found', message: `No lead has id ${lead.id}.` },
    ])
    expect(eventsOfRows()).toEqual(['lead.delete.before', 'lead.delete.after'])
    expect(await count('/leads')).toBe(before - 1)
    for (const at of ['/contacts/persons', '/contacts/organizations', '/products']) expect(await count(at)).toBe(0)
  })
})

describe('validating', () => {
  it('tries all rows and stores only the errors', async () => {
    const { id } = await using().record(
      'persons',
      csvOf([
        ['name', 'emails', 'organization_name', 'tags'],
        ['Ada', 'ada@example.com', 'Acme', 'VIP'],
        ['', 'no address', '', ''],
      ]),
      { process_in_queue: true },
    )
    server.events()
    const asked = await using().post(id, 'validate')
    expect(asked.state).toBe('validating')
    expect(server.events()).toEqual(['data_transfer.imports.validate.before', 'data_transfer.imports.validate.after'])
    await server.work()
    expect(await shown(id)).toMatchObject({
      state: 'validated',
      progress: 100,
      processed_rows_count: 2,
      invalid_rows_count: 1,
      // One error for the address, and one for the missing name.
      errors_count: 2,
    })
    expect(eventsOfRows()).toEqual([])
    for (const at of ['/contacts/persons', '/contacts/organizations', '/tags']) expect(await count(at)).toBe(0)
    const { body } = await server.admin.get(`${path}/${id}/stats`)
    expect(body.data.stats).toEqual({
      batches: { total: 1, completed: 0, remaining: 1 },
      progress: 100,
      summary: { created: 0, updated: 0, deleted: 0, skipped: 0 },
    })
  })

  it('sees what rows of different batches have in common, as the import itself will', async () => {
    const rows = numbered(2, 131, (row) => [`Person ${row}`, `p${row}@example.com`, `+1 202 ${1000 + row}`])
    rows[118] = ['', 'P3@example.com', '']
    rows[119] = ['Twice', 'twice@example.com', '+1 (202) 1005']
    const [numbers] = (await server.admin.get('/settings/attributes?entity_type=persons&code=contact_numbers')).body
      .data
    await server.admin.put(`/settings/attributes/${numbers.id}`, { is_unique: true })
    const { id, errors } = await using().validate('persons', csvOf([['name', 'emails', 'contact_numbers'], ...rows]))
    const twice = { row: 121, column: 'contact_numbers', code: 'unique_violation' }
    expect(errors).toEqual([{ ...twice, message: 'This value is that of row 5 of the file.' }])
    const done = await using().post(id, 'start')
    expect(done.summary).toEqual({ created: 128, updated: 1, deleted: 0, skipped: 1 })
    expect(done.errors).toEqual([{ ...twice, message: 'Another person has this value.' }])
  })

  it('finds too much wrong when errors stop it, or no row is left', async () => {
    const table = csvOf([['name'], ['Acme'], ['x'.repeat(256)], ['y'.repeat(256)]])
    const validate = async (options: object) => (await using().validate('organizations', table, { ...options })).state
    expect(await validate({ validation_strategy: 'stop-on-errors' })).toBe('invalid')
    expect(await validate({ validation_strategy: 'stop-on-errors', allowed_errors: 1 })).toBe('invalid')
    expect(await validate({ validation_strategy: 'stop-on-errors', allowed_errors: 2 })).toBe('validated')
    expect(await validate({ validation_strategy: 'skip-errors' })).toBe('validated')
    expect((await using().validate('organizations', csvOf([['name'], ['x'.repeat(256)]]))).state).toBe('invalid')
  })
})

describe('a run', () => {
  const table = csvOf([['sku', 'name', 'price'], ...numbered(1, 1050, (n) => [`p-${n}`, `Product ${n}`, n])])
  const queued = async (type = 'products', sent = table) => {
    const { id } = await using().record(type, sent, { process_in_queue: true })
    await using().post(id, 'validate')
    await server.work()
    return id
  }
  /** Adds a trigger that makes the storage of a batch fail. */
  const trap = (event: string, action: string) =>
    server.store.db.executeQuery({
      sql: `create trigger trap ${event} begin ${action}; end`,
      parameters: [],
      query: {},
    } as never)
  const untrap = () => server.store.db.executeQuery({ sql: 'drop trigger trap', parameters: [], query: {} } as never)

  it.runIf(!isPostgres)('goes on behind the last batch after a crash; no row is lost or doubled', async () => {
    const id = await queued()
    await trap('before insert on import_batches when new.number = 4', "select raise(abort, 'crash')")
    await using().post(id, 'start')
    server.events()
    await server.work()
    expect(await shown(id)).toMatchObject({ state: 'processing', processed_rows_count: 300, progress: 28 })
    expect(await count('/products')).toBe(300)
    const { body } = await server.admin.get(`${path}/${id}/stats`)
    expect(body.data.stats.batches).toEqual({ total: 11, completed: 3, remaining: 8 })
    await untrap()
    server.clock.advanceMs(60_000)
    await server.work()
    expect(await shown(id)).toMatchObject({
      state: 'completed',
      summary: { created: 1050, updated: 0, deleted: 0, skipped: 0 },
    })
    expect(await count('/products')).toBe(1050)
    const names = server.events()
    expect(names.filter((name) => name === 'product.create.after')).toHaveLength(1050)
    expect(names.filter((name) => name === 'data_transfer.imports.completed')).toHaveLength(1)
    const { body: again } = await server.admin.post(`${path}/${id}/start`)
    expect(again.code).toBe('state_conflict')
  })

  it('that two processes have taken up imports each row once', async () => {
    const id = await queued()
    await using().post(id, 'start')
    const { services } = server.app
    const runs = [1, 2].map(() => processRows({ services, id, own: newOwnerId() }).catch(() => undefined))
    await Promise.all(runs)
    server.clock.advanceMs(60_000)
    await server.work()
    expect(await shown(id)).toMatchObject({ state: 'completed', summary: { created: 1050, updated: 0, skipped: 0 } })
  })

  it.runIf(!isPostgres)(
    'can be canceled between two batches and started again, which skips finished rows',
    async () => {
      const id = await queued()
      await using().post(id, 'start')
      const cancelled = await using().post(id, 'cancel')
      expect(cancelled.state).toBe('cancelled')
      await server.work()
      expect(await count('/products')).toBe(0)
      await trap(
        'after insert on import_batches when new.number = 2',
        `update imports set state = 'cancelled' where id = ${id}`,
      )
      await using().post(id, 'start')
      await server.work()
      expect(await shown(id)).toMatchObject({ state: 'cancelled', processed_rows_count: 200 })
      await untrap()
      server.events()
      await using().post(id, 'start')
      expect(server.events()).toEqual(['data_transfer.imports.update.before', 'data_transfer.imports.update.after'])
      await server.work()
      expect(await shown(id)).toMatchObject({ state: 'completed', summary: { created: 1050, updated: 0 } })
    },
  )

  it('is not for a request when it has more than 1,000 rows', async () => {
    const { id } = await using().record('products', table)
    const { status, body } = await server.admin.post(`${path}/${id}/validate`)
    expect([status, body.code]).toEqual([409, 'state_conflict'])
    expect((await shown(id)).state).toBe('pending')
  })

  it('tells that it was started and completed, once each', async () => {
    const { id } = await using().record('organizations', 'name\nAcme\n')
    await using().post(id, 'validate')
    server.events()
    await using().post(id, 'start')
    expect(server.events()).toEqual([
      'data_transfer.imports.update.before',
      'data_transfer.imports.update.after',
      'data_transfer.imports.started',
      'contacts.organization.create.before',
      'contacts.organization.create.after',
      'data_transfer.imports.completed',
    ])
  })

  it('undoes all changes of a row that is refused late, without events', async () => {
    const { id } = await using().record(
      'organizations',
      csvOf([
        ['name', 'tags'],
        ['Acme', ''],
        ['Late', 'VIP'],
        ['Beta', ''],
      ]),
    )
    await using().post(id, 'validate')
    server.events()
    refused.add('links')
    const { errors, summary } = await using().post(id, 'start')
    refused.clear()
    expect(errors).toEqual([{ row: 3, column: null, code: 'event_vetoed', message: 'No tags.' }])
    expect(summary).toEqual({ created: 2, updated: 0, deleted: 0, skipped: 1 })
    expect(eventsOfRows().filter((name) => name.endsWith('.after'))).toEqual([
      'contacts.organization.create.after',
      'contacts.organization.create.after',
    ])
    expect((await all('/contacts/organizations')).map(({ name }: any) => name)).toEqual(['Acme', 'Beta'])
    const events = await server.store.db.selectFrom('events').select('name').where('origin', '=', 'import').execute()
    expect(events.map(({ name }) => name).filter((name) => !name.startsWith('data_transfer.'))).toEqual([
      'contacts.organization.create.after',
      'contacts.organization.create.after',
    ])
    expect((await server.admin.get('/search?q=Late')).body.data).toEqual([])
    expect(await count('/tags')).toBe(0)
  })

  it('stops with the batch that has more errors than are allowed, and keeps nothing of that batch', async () => {
    const rows = numbered(1, 150, (n) => [`p-${n}`, `Product ${n}`, n])
    const { id } = await using().record('products', csvOf([['sku', 'name', 'price'], ...rows]), {
      validation_strategy: 'stop-on-errors',
    })
    await using().post(id, 'validate')
    refused.add('p-120')
    const failed = await using().post(id, 'start')
    expect(failed).toMatchObject({ state: 'failed', processed_rows_count: 100, invalid_rows_count: 1, errors_count: 1 })
    expect(await count('/products')).toBe(100)
    refused.clear()
    expect(await using().post(id, 'start')).toMatchObject({
      state: 'completed',
      errors: [],
      errors_count: 0,
      summary: { created: 150 },
    })
  })
})

describe('the user of an import', () => {
  const keys = [
    'settings.data_transfer.imports.create',
    'settings.data_transfer.imports.import',
    'contacts.organizations',
    'contacts.organizations.create',
    'contacts.organizations.edit',
  ]
  const table = csvOf([['name'], ['Acme'], ['Beta']])
  async function validated(changes = {}, options: Record<string, unknown> = {}) {
    const user = await someone(server, keys, changes)
    const { id } = await importing(user.caller).validate('organizations', table, options)
    await server.work()
    return { user, id }
  }

  it('must hold what each row needs, when it is imported', async () => {
    const { user, id } = await validated()
    await given(server.admin).organization({ name: 'Acme', user_id: user.id })
    const role = (await server.admin.get(`/settings/roles/${user.roleId}`)).body.data
    await server.admin.put(`/settings/roles/${user.roleId}`, {
      permissions: role.permissions.filter((key: string) => key !== 'contacts.organizations.create'),
    })
    const { state, errors, summary } = await importing(user.caller).post(id, 'start')
    expect([state, summary]).toEqual(['completed', { created: 0, updated: 1, deleted: 0, skipped: 1 }])
    expect(errors).toEqual([
      {
        row: 3,
        column: null,
        code: 'forbidden',
        message: 'You need the permission contacts.organizations.create for this.',
      },
    ])
  })

  it('must be there and active, else it fails with a sentence', async () => {
    const { user, id } = await validated({}, { process_in_queue: true })
    await importing(user.caller).post(id, 'start')
    await server.admin.put(`/settings/users/${user.id}`, { is_active: false })
    server.events()
    await server.work()
    const { state, errors } = await shown(id)
    expect([state, errors[0].row]).toEqual(['failed', 0])
    expect(errors[0].message).toMatch(/was deleted or is inactive/)
    expect(eventsOfRows()).toEqual([])
  })

  it('owns what is created', async () => {
    const { user, id } = await validated()
    await importing(user.caller).post(id, 'start')
    expect((await all('/contacts/organizations')).map((each: any) => each.user_id)).toEqual([user.id, user.id])
  })

  it('cannot have written by a file what the token may not write', async () => {
    const { id } = await using().record('organizations', table)
    const narrow = await server.as(1, ['data-transfer:*'])
    const { status, body } = await narrow.post(`${path}/${id}/validate`)
    expect([status, body.required]).toEqual([403, 'organizations:write'])
  })
})

describe('the import of another user', () => {
  const keys = ['', '.create', '.edit', '.import'].map((key) => `settings.data_transfer.imports${key}`)
  const all = [...keys, ...['', '.view', '.create', '.edit', '.delete'].map((key) => `contacts.persons${key}`)]
  const table = csvOf([
    ['name', 'emails'],
    ['Hidden', 'hidden@example.com'],
    ['Wrong', 'no address'],
  ])
  const own = csvOf([['emails'], ['hidden@example.com']])
  const limited = () => someone(server, all, { view_permission: 'individual' })
  const uploaded = async (caller: Caller, text: string): Promise<number> => {
    const sent = await form({ file: file('own.csv', text) })
    return (await caller.post('/files', sent.body, { headers: sent.headers })).body.data.id
  }
  const persons = async () => (await server.admin.get('/contacts/persons')).body.data

  it('can be started only by its user', async () => {
    const { caller } = await someone(server, 'all')
    const { id } = await using().validate('persons', table)
    server.events()
    const { status, body } = await caller.post(`${path}/${id}/start`)
    expect([status, body.code]).toEqual([409, 'state_conflict'])
    expect(body.detail).toMatch(/belongs to another user/)
    expect([(await shown(id)).state, server.events(), await persons()]).toEqual(['validated', [], []])
    expect((await using().post(id, 'start')).summary.created).toBe(1)
  })

  it('belongs to a user who sends another file: rows run as that user, and the former owner cannot start them', async () => {
    await given(server.admin).person({ emails: [{ value: 'hidden@example.com' }] })
    const { caller } = await limited()
    const { id } = await using().validate('persons', table)
    const file_id = await uploaded(caller, own)
    const changed = await caller.put(`${path}/${id}`, { action: 'delete', file_id })
    expect([changed.status, changed.body.data.state]).toEqual([200, 'pending'])
    expect((await server.admin.post(`${path}/${id}/start`)).status).toBe(409)
    const { state, errors } = await importing(caller).post(id, 'validate')
    expect([state, errors[0].code]).toEqual(['invalid', 'not_found'])
    // Even in the state `validated`, only the user of the import can start it.
    await server.store.db.updateTable('imports').set({ state: 'validated' }).where('id', '=', id).execute()
    expect((await server.admin.post(`${path}/${id}/start`)).status).toBe(409)
    expect((await importing(caller).post(id, 'start')).summary).toMatchObject({ deleted: 0, skipped: 1 })
    expect(await persons()).toHaveLength(1)
  })

  it('cannot be changed, validated or read by those who do not see all records, nor its file taken along', async () => {
    const { caller } = await limited()
    const waiting = await using().record('persons', table)
    const { id, file: stored } = await using().validate('persons', table)
    server.events()
    const { status, body } = await caller.put(`${path}/${id}`, { allowed_errors: 7 })
    expect([status, body.code]).toEqual([403, 'forbidden'])
    expect((await caller.post(`${path}/${waiting.id}/validate`)).body.code).toBe('state_conflict')
    for (const at of [`${path}/${id}/file`, `${path}/${id}/error-report`, `/files/${stored.id}`])
      expect((await caller.get(at)).status).toBe(404)
    expect((await caller.get(`/files/${stored.id}/download`)).status).toBe(404)
    const options = { type: 'persons', action: 'append', validation_strategy: 'skip-errors' }
    const taken = await caller.post(path, { ...options, file_id: stored.id })
    expect(taken.body.errors).toEqual({ file_id: [`No file has id ${stored.id}.`] })
    expect([await shown(id), server.events()]).toMatchObject([{ state: 'validated', allowed_errors: 0 }, []])
    // An update that changes nothing does not change the owner.
    expect((await caller.put(`${path}/${id}`, { allowed_errors: 0 })).status).toBe(200)
    expect((await caller.get(`${path}/${id}/file`)).status).toBe(404)
  })

  it('is read by those who see all records, and theirs when they validate it', async () => {
    const maker = await limited()
    const { caller, id: user } = await someone(server, all)
    const { id, file: stored } = await importing(maker.caller).validate('persons', table)
    expect((await caller.get(`${path}/${id}/file`)).text).toBe(table)
    expect((await caller.get(`${path}/${id}/error-report`)).status).toBe(200)
    expect((await caller.get(`/files/${stored.id}`)).status).toBe(200)
    const waiting = await importing(maker.caller).record('persons', table)
    await importing(caller).post(waiting.id, 'validate')
    expect((await maker.caller.post(`${path}/${waiting.id}/start`)).status).toBe(409)
    await importing(caller).post(waiting.id, 'start')
    expect((await persons()).map((each: { user_id: number }) => each.user_id)).toEqual([user])
  })

  it('continues only for its own user after it was canceled; a retried job continues for that user', async () => {
    const maker = await limited()
    const mine = importing(maker.caller)
    const { id } = await mine.record('persons', table, { process_in_queue: true })
    await mine.post(id, 'validate')
    await server.work()
    await mine.post(id, 'start')
    await using().post(id, 'cancel')
    expect((await server.admin.post(`${path}/${id}/start`)).body.code).toBe('state_conflict')
    await mine.post(id, 'start')
    const job = await server.store.db
      .updateTable('jobs')
      .set({ crashes: maxCrashes })
      .where('kind', '=', 'imports.process')
      .returning('id')
      .executeTakeFirstOrThrow()
    await server.work()
    expect((await shown(id)).state).toBe('failed')
    expect((await server.admin.post(`${path}/${id}/start`)).body.code).toBe('state_conflict')
    expect((await server.admin.post(`/jobs/${job.id}/retry`)).status).toBe(202)
    await server.work()
    expect((await shown(id)).state).toBe('completed')
    expect((await persons()).map((each: { user_id: number }) => each.user_id)).toEqual([maker.id])
  })
})

describe('rows that take long', () => {
  it('each let others have their turn, tried or imported', async () => {
    const turns = countTurns()
    const products = server.app.services.resources.get('products') as unknown as {
      add: (...args: unknown[]) => unknown
    }
    const { add } = products
    const at: number[] = []
    const slow = vi.spyOn(products, 'add').mockImplementation((...args) => {
      at.push(turns.count)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25)
      return add(...args)
    })
    const rows = numbered(1, 12, (n) => [`p-${n}`, `Product ${n}`, n])
    try {
      await using().run('products', csvOf([['sku', 'name', 'price'], ...rows]))
    } finally {
      turns.stop()
      slow.mockRestore()
    }
    // A batch that conflicts at its commit is imported again; the dry run before has no commit.
    expect(at).toHaveLength(isHostile ? 36 : 24)
    expect(new Set(at).size).toBe(at.length)
  })
})

describe('states', () => {
  it('allow each move from where it begins only', async () => {
    const { id } = await using().record('organizations', 'name\nAcme\n')
    const refused = async (what: string) => (await server.admin.post(`${path}/${id}/${what}`)).body.code
    expect([await refused('start'), await refused('cancel')]).toEqual(['state_conflict', 'state_conflict'])
    await using().post(id, 'validate')
    expect([await refused('validate'), await refused('cancel')]).toEqual(['state_conflict', 'state_conflict'])
    await using().post(id, 'start')
    expect([await refused('validate'), await refused('start'), await refused('cancel')]).toEqual(
      Array(3).fill('state_conflict'),
    )
  })

  it('are not moved by a dry run', async () => {
    const { id } = await using().record('organizations', 'name\nAcme\n')
    const dry = await server.admin.post(`${path}/${id}/validate`, undefined, { headers: { 'accord-dry-run': 'true' } })
    expect([dry.status, dry.body.data.state]).toEqual([200, 'validating'])
    expect((await shown(id)).state).toBe('pending')
  })
})

describe('downloadImportErrorReport', () => {
  it('has the failing rows as they were and why, and can be imported when they are mended', async () => {
    const table = csvOf([
      ['name', 'user_id'],
      ['Acme', ''],
      ['=Beta', 'me'],
      ['x'.repeat(256), 'you'],
    ])
    const { id } = await using().validate('organizations', table)
    const { status, text, headers } = await server.admin.get(`${path}/${id}/error-report`)
    expect(status).toBe(200)
    expect(headers['content-disposition']).toContain(`import-${id}-errors.csv`)
    expect(text.split('\r\n')).toEqual([
      'name,user_id,error',
      "'=Beta,me,user_id: Must be a whole number or null.",
      `${'x'.repeat(256)},you,name: Must not be longer than 255 characters. user_id: Must be a whole number or null.`,
      '',
    ])
    expect((await shown(id)).error_file_path).toBe(`/api/admin${path}/${id}/error-report`)
    const mended = text.replaceAll(',me,', ',1,').replaceAll(',you,', ',1,').replace('x'.repeat(101), 'Gamma')
    expect((await using().run('organizations', mended)).summary).toMatchObject({ created: 2, skipped: 0 })
  })

  it('is not there when the file is gone whose rows they were', async () => {
    const { id } = await using().validate('organizations', 'name,user_id\nAcme,me\n')
    await server.store.db.deleteFrom('files').execute()
    const { status, body } = await server.admin.get(`${path}/${id}/error-report`)
    expect([status, body.code, body.detail]).toEqual([404, 'not_found', 'The file of the import is gone.'])
    expect((await shown(id)).errors).toHaveLength(1)
  })

  it('is not there while nothing failed', async () => {
    const { id, error_file_path } = await using().validate('organizations', 'name\nAcme\n')
    expect(error_file_path).toBeNull()
    expect((await server.admin.get(`${path}/${id}/error-report`)).status).toBe(404)
  })
})
