// The audience of a campaign: its persons, its size, and the deletion of the tag, import or
// attribute that it refers to. The consent of persons: its source, its time, and the mails that it
// prevents. Mails are sent to a real SMTP server.
import PostalMime from 'postal-mime'
import { beforeEach, describe, expect, it } from 'vitest'
import { unsubscribeToken } from '../../src/resources/marketing/unsubscribe.ts'
import { type Caller, start } from '../support/app.ts'
import { deleteNamed } from '../support/deleted.ts'
import { csvOf, importing, path as imports } from '../support/importing.ts'
import { useSmtp } from '../support/outside.ts'
import { follow, parametersOf } from '../support/schema.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const campaigns = '/settings/marketing/campaigns'
const suppressions = '/settings/marketing/suppressions'
const people = '/contacts/persons'
const none = { filter: null, tag_id: null, import_id: null }

let refuses: ((name: string) => boolean) | null = null
let made = 0

const smtp = useSmtp()
const server = useServer(() => ({
  config: { smtpUrl: smtp.url, campaignRate: 1000 },
  extensions: [
    (events) =>
      events.on('*', ({ name }) => {
        if (refuses?.(name)) throw new events.Veto('Not now.')
      }),
  ],
}))
beforeEach(() => {
  refuses = null
})

/** Creates a person with the addresses `<name>@example.com` and `more`. */
const person = async (name: string, changes: object = {}, ...more: string[]): Promise<number> => {
  const emails = [`${name.toLowerCase()}@example.com`, ...more].map((value) => ({ value }))
  const { body, status, text } = await server.admin.post(people, { name, emails, ...changes })
  expect(status === 201 ? '' : text).toBe('')
  return body.data.id
}
const personOf = async (id: number) => (await server.admin.get(`${people}/${id}`)).body.data
const tag = async (name: string): Promise<number> => (await server.admin.post('/tags', { name })).body.data.id
const template = async (): Promise<number> =>
  (
    await server.admin.post('/settings/email-templates', {
      name: `Spring ${++made}`,
      subject: 'Unused',
      content: '<p>Dear {%persons.name%}</p>',
    })
  ).body.data.id
const attempt = async (audience: object | undefined, caller: Caller = server.admin) =>
  caller.post(campaigns, {
    name: 'Spring',
    subject: 'Hello {%persons.name%}',
    is_active: true,
    email_template_id: 1,
    ...(audience && { audience }),
  })
const campaign = async (audience?: object): Promise<number> => {
  const { body, status, text } = await attempt(audience)
  expect(status === 201 ? '' : text).toBe('')
  await server.admin.put(`${campaigns}/${body.data.id}`, { email_template_id: await template() })
  server.events()
  return body.data.id
}
const show = async (id: number) => (await server.admin.get(`${campaigns}/${id}`)).body.data
const size = async (id: number) => (await server.admin.get(`${campaigns}/${id}/audience`)).body.data
const run = async (id: number) => {
  const answer = await server.admin.post(`${campaigns}/${id}/run`)
  await server.work()
  return answer
}
const recipients = () => smtp.received.map(({ to }) => to.join()).sort()
const ledger = async (id: number) =>
  (await server.admin.get(`${campaigns}/${id}/sends`, { query: { per_page: '100', sort: 'id' } })).body.data.map(
    ({ address, state, error }: { address: string; state: string; error: string | null }) => [address, state, error],
  )
const unsubscribe = (address: string) =>
  server.anonymous.post(
    `//u/${unsubscribeToken(server.app.services, address)}`,
    new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }).toString(),
    { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  )
const noted = 'A person with this address has refused campaigns: subscribed is false.'

describe('the audience of a campaign', () => {
  it('is all persons unless it says otherwise', async () => {
    await person('Ada')
    await person('Grace')
    const id = await campaign()
    expect((await show(id)).audience).toEqual({ type: 'all', ...none })
    await run(id)
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
  })

  it('is those with a tag at the time of each run', async () => {
    const vip = await tag('vip')
    const ada = await person('Ada', { tag_ids: [vip] })
    const grace = await person('Grace')
    const id = await campaign({ type: 'tag', tag_id: vip })
    expect((await show(id)).audience).toEqual({ type: 'tag', ...none, tag_id: vip })
    await run(id)
    expect(recipients()).toEqual(['ada@example.com'])
    await server.admin.post(`${people}/${grace}/tags`, { tag_id: vip })
    await server.admin.delete(`${people}/${ada}/tags/${vip}`)
    await run(id)
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
    expect(await size(id)).toMatchObject({ matched: 1, already_sent: 1, reachable: 0 })
  })

  it('is empty, and says why, when the tag that its filter excludes is deleted', async () => {
    const unwanted = await tag('unwanted')
    await person('Ada', { tag_ids: [unwanted] })
    const id = await campaign({ type: 'filter', filter: { 'tag_id[not]': [unwanted] } })
    expect(await size(id)).toMatchObject({ matched: 0, problem: null })
    await deleteNamed(server, `/tags/${unwanted}`)
    await run(id)
    expect(recipients()).toEqual([])
    const { matched, problem } = await size(id)
    expect([matched, problem]).toEqual([
      0,
      `The filter of the audience no longer works. tag_id[not]: No tag has id ${unwanted}.`,
    ])
  })

  it('is those whom a filter selects, with the filters and meanings of the list of persons', async () => {
    const vip = await tag('vip')
    const attribute = { entity_type: 'persons', code: 'size', name: 'Size', type: 'text' }
    await server.admin.post('/settings/attributes', attribute)
    const ada = await person('Ada', { job_title: 'Analyst', custom_attributes: { size: 'large' } })
    await person('Grace', { job_title: 'Admiral', subscribed: true, tag_ids: [vip] })
    await person('Joan', { job_title: 'analyst', user_id: 1, subscribed: false })
    const filters: [object, Record<string, string>][] = [
      [{ job_title: ['ANALYST'] }, { job_title: 'ANALYST' }],
      [{ 'job_title[not]': ['analyst'] }, { 'job_title[not]': 'analyst' }],
      [{ subscribed: true }, { subscribed: 'true' }],
      [{ 'subscribed[null]': true }, { 'subscribed[null]': 'true' }],
      [{ 'tag_id[not]': [vip] }, { 'tag_id[not]': String(vip) }],
      [{ q: 'ada' }, { q: 'ada' }],
      [{ id: [ada, 99] }, { id: `${ada},99` }],
      [{ 'created_at[gt]': '2026-03-01' }, { 'created_at[gt]': '2026-03-01' }],
      [{ 'created_at[lt]': start }, { 'created_at[lt]': start }],
      [{ email: ['Ada@Example.com'] }, { email: 'Ada@Example.com' }],
      [{ custom_attributes: { size: 'Large,huge' } }, { 'custom_attributes[size]': 'Large,huge' }],
      [
        { job_title: ['analyst'], user_id: [1] },
        { job_title: 'analyst', user_id: '1' },
      ],
    ]
    const id = await campaign()
    for (const [filter, query] of filters) {
      const saved = await server.admin.put(`${campaigns}/${id}`, { audience: { type: 'filter', filter } })
      expect([saved.status, saved.body.data?.audience]).toEqual([200, { type: 'filter', ...none, filter }])
      const { body } = await server.admin.get(people, { query })
      expect([filter, (await size(id)).matched]).toEqual([filter, body.meta.total])
    }
    await run(id)
    expect(await ledger(id)).toEqual([
      ['ada@example.com', 'sent', null],
      ['joan@example.com', 'suppressed', noted],
    ])
  })

  it('is the persons that an import created or changed, and no others', async () => {
    await person('Ada', {}, 'ada@home.example')
    await person('Joan')
    const done = await importing(server.admin).run(
      'persons',
      csvOf([
        ['name', 'emails', 'job_title'],
        ['Ada', 'ada@example.com', 'Analyst'],
        ['Grace', 'grace@example.com', 'Admiral'],
        ['', 'nobody', ''],
        ['Ada', 'ada@home.example', 'Countess'],
      ]),
    )
    expect(done.summary).toMatchObject({ created: 1, updated: 2, skipped: 1 })
    const id = await campaign({ type: 'import', import_id: done.id })
    expect(await size(id)).toMatchObject({ matched: 2, reachable: 2, problem: null })
    await run(id)
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
  })

  it('loses a deleted person, and has it again once it is restored', async () => {
    const done = await importing(server.admin).run(
      'persons',
      csvOf([
        ['name', 'emails'],
        ['Ada', 'ada@example.com'],
        ['Grace', 'grace@example.com'],
      ]),
    )
    const id = await campaign({ type: 'import', import_id: done.id })
    const { body } = await server.admin.get(people, { query: { email: 'ada@example.com' } })
    await server.admin.delete(`${people}/${body.data[0].id}`)
    expect((await size(id)).matched).toBe(1)
    const restored = await server.admin.post(`${people}/${body.data[0].id}/restore`)
    expect([restored.status, restored.body.meta.dropped]).toEqual([200, []])
    expect((await size(id)).matched).toBe(2)
  })

  it('names every mistake at its place, and stores nothing', async () => {
    const leads = await importing(server.admin).record('leads', csvOf([['title'], ['x']]))
    const removal = await importing(server.admin).record('persons', csvOf([['emails'], ['x@example.com']]), {
      action: 'delete',
    })
    server.events()
    const wrong: [object, string[]][] = [
      [{}, ['audience.type']],
      [{ type: 'everyone' }, ['audience.type']],
      [{ type: 'tag' }, ['audience.tag_id']],
      [{ type: 'tag', tag_id: 99 }, ['audience.tag_id']],
      [{ type: 'import', import_id: 99 }, ['audience.import_id']],
      [{ type: 'import', import_id: leads.id }, ['audience.import_id']],
      [{ type: 'import', import_id: removal.id }, ['audience.import_id']],
      [{ type: 'filter' }, ['audience.filter']],
      [{ type: 'filter', filter: {} }, ['audience.filter']],
      [{ type: 'filter', filter: { color: ['red'] } }, ['audience.filter.color']],
      [{ type: 'filter', filter: { tag_id: [99] } }, ['audience.filter.tag_id.0']],
      [
        { type: 'filter', filter: { custom_attributes: { size: 'x', hue: 'y' } } },
        ['audience.filter.custom_attributes.hue', 'audience.filter.custom_attributes.size'],
      ],
      [{ type: 'all', import_id: null, filter: { subscribed: true } }, ['audience.filter']],
    ]
    for (const [audience, fields] of wrong) {
      const { status, body } = await attempt(audience)
      expect([audience, status, Object.keys(body.errors ?? {}).sort()]).toEqual([audience, 422, fields])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get(campaigns)).body.meta.total).toBe(0)
  })

  it('takes back what was read, and refuses a filter of a user who does not see all persons', async () => {
    const id = await campaign({ type: 'filter', filter: { job_title: ['Analyst'] } })
    const clerk = await addUser(server, 'Clerk', { view: 'group' })
    const refused = await clerk.put(`${campaigns}/${id}`, {
      audience: { type: 'filter', filter: { job_title: ['Spy'] } },
    })
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    const read = await show(id)
    const shown = (await clerk.get(`${campaigns}/${id}`)).body.data
    expect(shown.audience).toEqual({ type: 'filter', ...none })
    expect((await clerk.put(`${campaigns}/${id}`, shown)).status).toBe(200)
    expect(await show(id)).toEqual(read)
    const blind = await addUser(server, 'Blind', {
      permissions: ['settings', 'settings.automation', 'settings.automation.campaigns.create'],
    })
    expect((await attempt({ type: 'filter', filter: { job_title: ['Spy'] } }, blind)).status).toBe(403)
    const everyone = await clerk.put(`${campaigns}/${id}`, { audience: { type: 'all' } })
    expect([everyone.status, everyone.body.data.audience]).toEqual([200, { type: 'all', ...none }])
  })

  it('reaches persons of all owners, and counts those whom the caller sees', async () => {
    const clerk = await addUser(server, 'Clerk', { view: 'individual' })
    const vip = await tag('vip')
    await person('Ada', { user_id: clerk.id, tag_ids: [vip] })
    await person('Grace', { user_id: 1, tag_ids: [vip] })
    const { body } = await attempt({ type: 'tag', tag_id: vip }, clerk)
    expect((await clerk.get(`${campaigns}/${body.data.id}/audience`)).body.data).toMatchObject({ matched: 1 })
    expect(await size(body.data.id)).toMatchObject({ matched: 2 })
    await clerk.post(`${campaigns}/${body.data.id}/run`)
    await server.work()
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
  })
})

describe('an audience that lost what it names', () => {
  /** Expects that all operations that need the audience of the campaign fail with this sentence. */
  const expectLost = async (id: number, sentence: RegExp) => {
    expect(await size(id)).toEqual({
      is_complete: true,
      matched: 0,
      without_address: 0,
      duplicates: 0,
      already_sent: 0,
      suppressed: 0,
      not_subscribed: 0,
      reachable: 0,
      problem: expect.stringMatching(sentence),
    })
    const preview = await server.admin.get(`${campaigns}/${id}/preview`)
    expect([preview.status, preview.body.data.recipients]).toEqual([200, 0])
    server.events()
    const answer = await run(id)
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      409,
      'state_conflict',
      expect.stringMatching(sentence),
    ])
    server.clock.set('2026-03-02T00:06:00.000Z')
    await server.tick()
    await server.work()
    expect([server.events(), await ledger(id), recipients()]).toEqual([[], [], []])
    const renamed = await server.admin.put(`${campaigns}/${id}`, { name: 'Later' })
    expect(renamed.status).toBe(200)
    const off = await server.admin.put(`${campaigns}/${id}`, { ...renamed.body.data, is_active: false })
    expect(off.status).toBe(200)
    const on = await server.admin.put(`${campaigns}/${id}`, { is_active: true })
    expect([on.status, on.body.errors]).toEqual([422, { audience: [expect.stringMatching(sentence)] }])
    const mended = await server.admin.put(`${campaigns}/${id}`, { is_active: true, audience: { type: 'all' } })
    expect(mended.status).toBe(200)
    await run(id)
    expect(recipients()).toEqual(['ada@example.com'])
  }

  it('has no recipients without its tag, instead of all persons', async () => {
    const vip = await tag('vip')
    await person('Ada', { tag_ids: [vip] })
    const id = await campaign({ type: 'tag', tag_id: vip })
    const { version } = await show(id)
    await server.admin.delete(`/tags/${vip}`)
    expect(await show(id)).toMatchObject({ audience: { type: 'tag', ...none }, version: version + 1 })
    await expectLost(id, /^The tag of the audience was deleted\.$/)
  })

  it('has no recipients without its import', async () => {
    const done = await importing(server.admin).run(
      'persons',
      csvOf([
        ['name', 'emails'],
        ['Ada', 'ada@example.com'],
      ]),
    )
    const id = await campaign({ type: 'import', import_id: done.id })
    expect((await server.admin.delete(`${imports}/${done.id}`)).status).toBe(200)
    await expectLost(id, /^The import of the audience was deleted\.$/)
  })

  it.each([true, false])('has no recipients without an attribute of its filter (strict: %s)', async (strict) => {
    const attribute = { entity_type: 'persons', code: 'size', name: 'Size', type: 'text' }
    const { body } = await server.admin.post('/settings/attributes', attribute)
    await person('Ada', { custom_attributes: { size: 'large' } })
    const id = await campaign({ type: 'filter', filter: { custom_attributes: { size: 'large' } } })
    await deleteNamed(server, `/settings/attributes/${body.data.id}`)
    const { config } = server.app.services
    const before = config.strict
    Object.assign(config, { strict })
    try {
      await expectLost(id, /custom_attributes\.size: Unknown attribute\.$/)
    } finally {
      Object.assign(config, { strict: before })
    }
  })

  it('has no recipients when an attribute of its filter holds other values by now', async () => {
    const attribute = { entity_type: 'persons', code: 'size', name: 'Size' }
    const { body } = await server.admin.post('/settings/attributes', { ...attribute, type: 'text' })
    await person('Ada')
    const id = await campaign({ type: 'filter', filter: { custom_attributes: { size: 'large' } } })
    await deleteNamed(server, `/settings/attributes/${body.data.id}`)
    await server.admin.post('/settings/attributes', { ...attribute, type: 'date' })
    await expectLost(id, /custom_attributes\.size: Must be /)
  })

  it('ends a run that is being queued, without a failed job', async () => {
    const vip = await tag('vip')
    await person('Ada', { tag_ids: [vip] })
    const id = await campaign({ type: 'tag', tag_id: vip })
    expect((await server.admin.post(`${campaigns}/${id}/run`)).status).toBe(202)
    await server.admin.delete(`/tags/${vip}`)
    await server.work()
    expect([await ledger(id), recipients()]).toEqual([[], []])
    expect(await server.store.db.selectFrom('jobs').selectAll().where('state', '=', 'buried').execute()).toEqual([])
  })
})

describe('PersonFilter', () => {
  it('selects the persons of an import, and keeps the import from being deleted', async () => {
    await person('Outside')
    const rows = [
      ['name', 'emails'],
      ['Ada', 'ada@example.com'],
    ]
    const { id: import_id } = await importing(server.admin).run('persons', csvOf(rows))
    const id = await campaign({ type: 'filter', filter: { import_id: [import_id] } })
    expect(await size(id)).toMatchObject({ matched: 1 })
    expect(await server.admin.delete(`${imports}/${import_id}`)).toMatchObject({
      status: 409,
      body: { code: 'in_use' },
    })
    expect((await attempt({ type: 'filter', filter: { import_id: [999_999] } })).status).toBe(422)
  })

  it('has exactly the filters of the list of persons', () => {
    const others = ['page', 'per_page', 'count', 'cursor', 'sort', 'include', 'fields']
    const names = parametersOf('listPersons', 'query').map(({ name }) => name)
    const { properties = {} } = follow({ $ref: '#/components/schemas/PersonFilter' })
    expect(Object.keys(properties).sort()).toEqual(names.filter((name) => !others.includes(name)).sort())
  })
})

describe('getCampaignAudience', () => {
  it('says how many a run reaches and how many it leaves out, and a run then does just that', async () => {
    await person('Ada', {}, 'ada@home.example')
    await person('Grace', { subscribed: false })
    await person('Joan')
    await person('Mary')
    await server.admin.post(people, { name: 'Unreachable' })
    const id = await campaign()
    await run(id)
    await person('Edith', { subscribed: true })
    await person('Hedy', { subscribed: false }, 'hedy@home.example')
    await person('Radia')
    await server.admin.post(suppressions, { address: 'RADIA@example.com' })
    const counts = await size(id)
    expect(counts).toEqual({
      is_complete: true,
      matched: 8,
      without_address: 1,
      duplicates: 0,
      already_sent: 3,
      suppressed: 1,
      not_subscribed: 2,
      reachable: 1,
      problem: null,
    })
    smtp.received.length = 0
    await run(id)
    expect(recipients()).toEqual(['edith@example.com'])
    expect((await show(id)).stats).toMatchObject({ sent: 4, suppressed: 3, queued: 0 })
    expect((await server.admin.get(`${campaigns}/99/audience`)).status).toBe(404)
  })

  it('counts an address of two persons once, and leaves it out when either refuses', async () => {
    await server.store.db
      .updateTable('attributes')
      .set((eb) => ({ is_unique: 0, version: eb('version', '+', 1) }))
      .where('code', '=', 'emails')
      .where('entity_type', '=', 'persons')
      .execute()
    const emails = (value: string) => ({ emails: [{ value }] })
    await person('Ada', { subscribed: true, ...emails('Shared@example.com') })
    await person('Grace', { subscribed: false, ...emails('shared@example.com') })
    await person('Joan')
    await person('Mary', emails('joan@example.com'))
    const id = await campaign({ type: 'filter', filter: { name: ['Ada', 'Joan', 'Mary'] } })
    expect(await size(id)).toMatchObject({ matched: 3, duplicates: 1, not_subscribed: 1, reachable: 1 })
    await run(id)
    expect(recipients()).toEqual(['joan@example.com'])
    expect(await ledger(id)).toContainEqual(['shared@example.com', 'suppressed', noted])
  })
})

describe('consent', () => {
  it('is set by a caller, with where and when, and stays as it is when it is sent again', async () => {
    const id = await person('Ada')
    const unknown = { subscribed: null, subscribed_source: null, subscribed_at: null }
    expect(await personOf(id)).toMatchObject(unknown)
    const agreed = { subscribed: true, subscribed_source: 'api', subscribed_at: start }
    server.events()
    const { body } = await server.admin.put(`${people}/${id}`, { subscribed: true })
    expect(body.data).toMatchObject(agreed)
    expect(server.events()).toEqual(['contacts.person.update.before', 'contacts.person.update.after'])
    const history = (await server.admin.get(`${people}/${id}/history`)).body.data[0]
    expect(history.changes).toContainEqual(expect.objectContaining({ key: 'subscribed', old: null, new: true }))
    server.clock.set('2026-03-05T09:00:00.000Z')
    expect((await server.admin.put(`${people}/${id}`, body.data)).body.data).toMatchObject(agreed)
    expect((await server.admin.put(`${people}/${id}`, { subscribed: false })).body.data).toMatchObject({
      subscribed: false,
      subscribed_at: '2026-03-05T09:00:00.000Z',
    })
    expect((await server.admin.put(`${people}/${id}`, { subscribed: null })).body.data).toMatchObject(unknown)
    const forged = await server.admin.post(people, { name: 'Grace', subscribed_source: 'web_form' })
    expect([forged.status, forged.body.errors]).toEqual([
      422,
      { subscribed_source: [expect.stringMatching(/send subscribed/)] },
    ])
  })

  it('comes with an import and goes out with an export', async () => {
    await person('Joan', { subscribed: true })
    await importing(server.admin).run(
      'persons',
      csvOf([
        ['name', 'emails', 'subscribed'],
        ['Ada', 'ada@example.com', 'true'],
        ['Grace', 'grace@example.com', 'false'],
        ['Mary', 'mary@example.com', ''],
        ['Joan', 'joan@example.com', 'NULL'],
      ]),
    )
    const { body } = await server.admin.get(people, { query: { sort: 'name' } })
    expect(
      body.data.map((each: Record<string, unknown>) => [each.name, each.subscribed, each.subscribed_source]),
    ).toEqual([
      ['Ada', true, 'import'],
      ['Grace', false, 'import'],
      ['Joan', null, null],
      ['Mary', null, null],
    ])
    const { text } = await server.admin.get(`${people}/export?sort=name`, { headers: { accept: 'text/csv' } })
    const [header = '', ada = ''] = text.split('\n').map((line) => line.trim())
    const at = header.split(',').indexOf('subscribed')
    expect(ada.split(',').slice(at, at + 3)).toEqual(['true', 'import', start])
  })

  it('may be a field of a web form: ticked means yes, unticked means no', async () => {
    const { body } = await server.admin.get('/settings/attributes?per_page=100')
    const field = (code: string) => ({
      attribute_id: body.data.find((each: any) => each.entity_type === 'persons' && each.code === code).id,
    })
    const make = (subscribed: object) =>
      server.admin.post('/settings/web-forms', {
        title: 'Newsletter',
        submit_button_label: 'Send',
        submit_success_action: 'message',
        submit_success_content: 'Thank you.',
        attributes: [field('name'), field('emails'), { ...field('subscribed'), ...subscribed }],
      })
    for (const is_hidden of [true, false]) {
      const ticked = await make({ is_hidden, default_value: true })
      expect([ticked.status, Object.keys(ticked.body.errors)]).toEqual([422, ['attributes.2.default_value']])
    }
    const form = await make({ default_value: false })
    const path = `//web-forms/forms/${form.body.data.form_id}`
    expect((await server.anonymous.get(`${path}/form.html`)).text).toMatch(
      /name="persons\[subscribed\]" value="1" type="checkbox"/,
    )
    const send = (persons: object) => server.anonymous.post(path, { persons })
    expect((await send({ name: 'Ada', emails: [{ value: 'ada@example.com' }], subscribed: true })).status).toBe(200)
    expect((await send({ name: 'Grace', emails: [{ value: 'grace@example.com' }] })).status).toBe(200)
    // A stranger who knows their addresses cannot change the consent of these persons.
    expect((await send({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })).status).toBe(200)
    expect((await send({ name: 'X', emails: [{ value: 'grace@example.com' }], subscribed: true })).status).toBe(200)
    const { body: listed } = await server.admin.get(people, { query: { sort: 'name' } })
    expect(
      listed.data.map((each: Record<string, unknown>) => [each.name, each.subscribed, each.subscribed_source]),
    ).toEqual([
      ['Ada', true, 'web_form'],
      ['Grace', false, 'web_form'],
    ])
  })

  it('ends for the whole person with the link of a campaign, by the events of any other write', async () => {
    const ada = await person('Ada', { subscribed: true }, 'ada@home.example')
    server.events()
    expect((await unsubscribe('ada@example.com')).status).toBe(200)
    expect(server.events()).toEqual([
      'marketing.suppression.create.before',
      'contacts.person.update.before',
      'marketing.suppression.create.after',
      'contacts.person.update.after',
    ])
    expect(await personOf(ada)).toMatchObject({
      subscribed: false,
      subscribed_source: 'unsubscribe_link',
      subscribed_at: start,
      unsubscribed_at: start,
    })
    expect((await unsubscribe('ada@example.com')).status).toBe(200)
    expect(server.events()).toEqual([])
    const id = await campaign()
    await run(id)
    expect(recipients()).toEqual([])
    // Without the suppression, the missing consent of the person still applies.
    const { body } = await server.admin.get(suppressions)
    await server.admin.delete(`${suppressions}/${body.data[0].id}`)
    expect(await size(await campaign())).toMatchObject({ not_subscribed: 1, reachable: 0 })
    await server.admin.put(`${people}/${ada}`, { subscribed: true })
    expect(await size(await campaign())).toMatchObject({ not_subscribed: 0, reachable: 1 })
  })

  it('does not lift a suppression', async () => {
    const ada = await person('Ada')
    await unsubscribe('ada@example.com')
    await server.admin.put(`${people}/${ada}`, { subscribed: true })
    const id = await campaign()
    await run(id)
    expect([recipients(), await ledger(id)]).toEqual([[], [['ada@example.com', 'suppressed', null]]])
  })

  it('suppresses the address though a listener refuses the change of the person', async () => {
    const ada = await person('Ada', { subscribed: true })
    refuses = (name) => name === 'contacts.person.update.before'
    expect((await unsubscribe('ada@example.com')).status).toBe(200)
    refuses = null
    expect(await personOf(ada)).toMatchObject({ subscribed: true, unsubscribed_at: start })
    expect(await size(await campaign())).toMatchObject({ suppressed: 1, reachable: 0 })
  })

  it('counts when the mail is sent, not only when it is queued', async () => {
    const ada = await person('Ada')
    await person('Grace')
    const id = await campaign()
    smtp.behave('greylist')
    await run(id)
    expect(await ledger(id)).toEqual([
      ['ada@example.com', 'queued', '451 Come back later'],
      ['grace@example.com', 'queued', '451 Come back later'],
    ])
    await server.admin.put(`${people}/${ada}`, { subscribed: false })
    smtp.behave('accept')
    server.clock.set('2026-03-01T10:00:00.000Z')
    await server.work()
    expect(recipients()).toEqual(['grace@example.com'])
    expect(await ledger(id)).toMatchObject([
      ['ada@example.com', 'suppressed', noted],
      ['grace@example.com', 'sent', null],
    ])
  })

  it('comes back with a restored person', async () => {
    const ada = await person('Ada', { subscribed: false })
    await server.admin.delete(`${people}/${ada}`)
    await server.admin.post(`${people}/${ada}/restore`)
    expect(await personOf(ada)).toMatchObject({ subscribed: false, subscribed_source: 'api', subscribed_at: start })
    expect(await size(await campaign())).toMatchObject({ not_subscribed: 1, reachable: 0 })
  })
})

describe('testCampaign', () => {
  it('sends the campaign to users, marked in the subject, and leaves no trace in the ledger', async () => {
    const ada = await person('Ada', { subscribed: false })
    const clerk = await addUser(server, 'Clerk')
    await server.admin.post(suppressions, { address: 'clerk@example.com' })
    const id = await campaign()
    const body = { user_ids: [clerk.id, 1], person_id: ada }
    const answer = await server.admin.post(`${campaigns}/${id}/test-send`, body)
    expect([answer.status, answer.body.data]).toEqual([
      202,
      { subject: '[Test] Hello Ada', person_id: ada, addresses: ['clerk@example.com', 'admin@example.com'] },
    ])
    await server.work()
    expect(recipients()).toEqual(['admin@example.com', 'clerk@example.com'])
    const mail = await PostalMime.parse(smtp.received[0]?.raw ?? '')
    expect([mail.subject, mail.html]).toEqual(['[Test] Hello Ada', expect.stringContaining('<p>Dear Ada</p>')])
    expect(mail.html).toContain('/u/example')
    expect(mail.headers.map(({ key }) => key)).not.toContain('list-unsubscribe')
    expect([await ledger(id), (await show(id)).stats]).toEqual([[], expect.objectContaining({ sent: 0, queued: 0 })])
    expect(server.events()).toEqual([])
    const { addresses } = (await server.admin.post(`${campaigns}/${id}/test-send`, { user_ids: [1] })).body.data
    expect(addresses).toEqual(['admin@example.com'])
  })

  it('works for a campaign that is inactive or lost its audience, but not without a template', async () => {
    const vip = await tag('vip')
    const id = await campaign({ type: 'tag', tag_id: vip })
    await server.admin.delete(`/tags/${vip}`)
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    const test = () => server.admin.post(`${campaigns}/${id}/test-send`, { user_ids: [1] })
    expect((await test()).body.data).toMatchObject({ person_id: null, subject: expect.stringMatching(/^\[Test\] /) })
    const { email_template_id } = await show(id)
    await server.admin.delete(`/settings/email-templates/${email_template_id}`)
    const refused = await test()
    expect([refused.status, refused.body.code]).toEqual([409, 'state_conflict'])
  })

  it('refuses users who are inactive or out of sight, too many of them, and a person out of sight', async () => {
    const ada = await person('Ada', { user_id: 1 })
    const off = await addUser(server, 'Off', { isActive: false })
    const clerk = await addUser(server, 'Clerk', { view: 'individual' })
    const id = await campaign()
    const fields = async (caller: Caller, body: object) => {
      const answer = await caller.post(`${campaigns}/${id}/test-send`, body)
      return [answer.status, Object.keys(answer.body.errors ?? {})]
    }
    expect(await fields(server.admin, { user_ids: [1, off.id, 99] })).toEqual([422, ['user_ids.2']])
    expect(await fields(server.admin, { user_ids: [1, off.id] })).toEqual([422, ['user_ids.1']])
    expect(await fields(clerk, { user_ids: [1] })).toEqual([422, ['user_ids.0']])
    expect(await fields(clerk, { user_ids: [clerk.id], person_id: ada })).toEqual([422, ['person_id']])
    expect(await fields(server.admin, { user_ids: [] })).toEqual([422, ['user_ids']])
    expect(await fields(server.admin, { user_ids: Array.from({ length: 11 }, (_, at) => at + 1) })).toEqual([
      422,
      ['user_ids'],
    ])
    const weak = await addUser(server, 'Weak', { permissions: ['settings.automation.campaigns'] })
    expect(await fields(weak, { user_ids: [weak.id] })).toEqual([403, []])
    await server.work()
    expect(recipients()).toEqual([])
  })

  it('is sent again after a temporary failure, and not after a refusal', async () => {
    const id = await campaign()
    const test = () => server.admin.post(`${campaigns}/${id}/test-send`, { user_ids: [1] })
    smtp.behave('greylist')
    await test()
    await server.work()
    expect(recipients()).toEqual([])
    smtp.behave('accept')
    server.clock.set('2026-03-01T09:35:00.000Z')
    await server.work()
    expect(recipients()).toEqual(['admin@example.com'])
    smtp.behave('refuse')
    await test()
    await server.work()
    const jobs = await server.store.db.selectFrom('jobs').selectAll().where('kind', '=', 'campaigns.test').execute()
    expect(jobs).toEqual([])
  })
})
