// A body may name a record instead of sending its id: `{ "email": … }`, `{ "name": … }` or
// `{ "sku": … }`.
import { describe, expect, it } from 'vitest'
import { startServer } from '../support/app.ts'
import { newName } from '../support/names.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer()

const post = async (path: string, body: object) => {
  const { status, text, body: reply } = await server.admin.post(path, body)
  expect(status, text).toBe(201)
  return reply.data
}
const addPerson = (more: object = {}) => {
  const name = newName('Zoë')
  return post('/contacts/persons', { name, emails: [{ value: `${name.replace(/\W/g, '')}@example.com` }], ...more })
}
const errorsOf = async (path: string, body: object, send = server.admin.post) => {
  const { status, body: reply } = await send(path, body)
  expect(status).toBe(422)
  return reply.errors
}

describe('a lead', () => {
  it('names everything that it refers to', async () => {
    const person = await addPerson()
    const source = await post('/sources', { name: newName('Fair') })
    const type = await post('/types', { name: newName('Renewal') })
    const product = await post('/products', { name: newName('Seat'), sku: newName('SEAT'), price: 10 })
    const tag = await post('/tags', { name: newName('Hot') })
    const lead = await post('/leads', {
      title: 'Named',
      lead_value: 5,
      user_id: { email: 'ADMIN@example.com' },
      person_id: { email: person.emails[0].value.toUpperCase() },
      lead_source_id: { name: ` ${source.name.toUpperCase()} ` },
      lead_type_id: { name: type.name },
      lead_pipeline_id: { name: 'Default Pipeline' },
      lead_pipeline_stage_id: { name: 'negotiation' },
      products: [{ product_id: { sku: product.sku }, quantity: 1, price: 3 }],
      tag_ids: [{ name: tag.name }],
    })
    expect(lead).toMatchObject({
      user: { id: 1 },
      person: { id: person.id },
      source: { id: source.id },
      type: { id: type.id },
      stage: { code: 'negotiation' },
      tags: [{ id: tag.id }],
    })
    const lines = await server.admin.get(`/leads/${lead.id}/products`)
    expect(lines.body.data).toMatchObject([{ product_id: product.id }])
    const moved = await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: { name: 'Won' } })
    expect(moved.body.data.stage.code, moved.text).toBe('won')
    const changed = await server.admin.put(`/leads/${lead.id}`, {
      person_id: { name: person.name.replace('Zoë', 'zoe') },
    })
    expect(changed.body.data.person.id, changed.text).toBe(person.id)
  })

  it('takes the stage of the named pipeline, of its own, or the only one', async () => {
    const stages = [
      { name: 'New', code: 'new', probability: 10, sort_order: 1 },
      { name: 'Visit', probability: 30, sort_order: 2 },
      { name: 'Won', code: 'won', probability: 100, sort_order: 3 },
      { name: 'Lost', code: 'lost', probability: 0, sort_order: 4 },
    ]
    const pipeline = await post('/pipelines', { name: newName('Field'), stages })
    const own = pipeline.stages.map(({ id }: { id: number }) => id)
    const lead = (more: object) => post('/leads', { title: 'Staged', lead_value: 1, ...more })
    const inField = await lead({ lead_pipeline_id: { name: pipeline.name }, lead_pipeline_stage_id: { name: 'Won' } })
    expect(inField.stage.id).toBe(own[2])
    expect((await lead({ lead_pipeline_stage_id: { name: 'Visit' } })).stage.id).toBe(own[1])
    expect(own).not.toContain((await lead({ lead_pipeline_stage_id: { name: 'Won' } })).stage.id)
    const back = await server.admin.put(`/leads/${inField.id}`, { lead_pipeline_stage_id: { name: 'new' } })
    expect(back.body.data?.stage.id, back.text).toBe(own[0])
    const body = { lead_pipeline_id: { name: pipeline.name }, lead_pipeline_stage_id: { name: 'Visti' } }
    expect(await errorsOf('/leads', { title: 'Staged', lead_value: 1, ...body })).toEqual({
      lead_pipeline_stage_id: ['No stage has the name Visti. Did you mean `Visit`?'],
    })
    const elsewhere = await lead({})
    const mass = (...ids: number[]) => ({ ids, value: { name: 'Won' } })
    expect((await server.admin.post('/leads/mass-update', mass(inField.id))).status).toBe(200)
    expect((await server.admin.get(`/leads/${inField.id}`)).body.data.stage.id).toBe(own[2])
    const many = await errorsOf('/leads/mass-update', mass(inField.id, elsewhere.id))
    expect(many.value[0]).toMatch(/^Several records have the name Won. Send one of the ids \d+, \d+/)
  })
})

describe('a stage', () => {
  it('is also found by its code, in all bodies that take a stage', async () => {
    const stages = [
      { name: 'New', code: 'new', probability: 10, sort_order: 1 },
      { name: 'Visit', code: 'on-site', probability: 30, sort_order: 2 },
      { name: 'Gewonnen', code: 'won', probability: 100, sort_order: 3 },
      { name: 'Lost', code: 'lost', probability: 0, sort_order: 4 },
    ]
    const pipeline = await post('/pipelines', { name: newName('Coded'), stages })
    const own = { lead_pipeline_id: pipeline.id }
    const lead = await post('/leads', { title: 'Coded', ...own, lead_pipeline_stage_id: { code: 'On-Site' } })
    expect([lead.stage.name, lead.lead_value]).toEqual(['Visit', 0])
    const won = { lead_pipeline_stage_id: { code: 'won' } }
    expect((await server.admin.put(`/leads/${lead.id}/stage`, won)).body.data.stage.name).toBe('Gewonnen')
    const first = { ids: [lead.id], value: { code: 'new' } }
    expect((await server.admin.post('/leads/mass-update', first)).status).toBe(200)
    const elsewhere = await post('/leads', { title: 'Coded', lead_pipeline_stage_id: { code: 'on-site' } })
    expect(elsewhere.pipeline.id).toBe(pipeline.id)
    const sentence = (code: string) => errorsOf('/leads', { title: 'Coded', ...own, lead_pipeline_stage_id: { code } })
    expect(await sentence('onsite')).toEqual({
      lead_pipeline_stage_id: ['No stage has the code onsite. Did you mean `on-site`?'],
    })
    // A name is not a code.
    expect(await sentence('Gewonnen')).toEqual({
      lead_pipeline_stage_id: ['No stage has the code Gewonnen. Known are new, on-site, won, lost.'],
    })
    const both = { lead_pipeline_stage_id: { code: 'won', name: 'Won' } }
    expect(Object.keys(await errorsOf('/leads', { title: 'Coded', ...both }))[0]).toMatch(/^lead_pipeline_stage_id/)
  })
})

describe('an unknown name', () => {
  it('is an error that names the nearest one', async () => {
    const source = await post('/sources', { name: newName('Billboard') })
    const body = { title: 'Typo', lead_value: 1, lead_source_id: { name: `${source.name}s` }, lead_value_: 1 }
    const errors = await errorsOf('/leads', body)
    expect(errors.lead_source_id).toEqual([`No source has the name ${source.name}s. Did you mean \`${source.name}\`?`])
  })

  it('is one error of a body with others', async () => {
    expect(
      await errorsOf('/leads', {
        title: '',
        user_id: { email: 'gone@example.com' },
        products: [{ product_id: { sku: 'x' } }],
      }),
    ).toMatchObject({
      user_id: ['No user has the e-mail address gone@example.com.'],
      'products.0.product_id': ['No product has the SKU x.'],
      title: ['The field is required.'],
    })
  })

  it.each([[{ id: 4 }], [{}], [{ name: 3 }], [{ email: 'no address' }], [[7]], ['Ada'], [true]])(
    'refuses %j without a 500',
    async (user_id) => {
      const errors = await errorsOf('/leads', { title: 'Odd', lead_value: 1, user_id })
      expect(Object.keys(errors).every((key) => key.startsWith('user_id'))).toBe(true)
    },
  )
})

describe('a name that several records have', () => {
  it('is refused with their ids', async () => {
    const name = newName('Twin')
    const [one, two] = [await post('/contacts/persons', { name }), await post('/contacts/persons', { name })]
    expect(await errorsOf('/leads', { title: 'Twins', lead_value: 1, person_id: { name } })).toEqual({
      person_id: [`Several records have the name ${name}. Send one of the ids ${one.id}, ${two.id}.`],
    })
  })

  it('is that of the record with the same accents, if only one has them', async () => {
    const name = newName('Café')
    const accented = await post('/contacts/organizations', { name })
    const plain = await post('/contacts/organizations', { name: name.replace('é', 'e') })
    const of = async (sent: string) => (await addPerson({ organization_id: { name: sent } })).organization.id
    expect([await of(name.toUpperCase()), await of(name.replace('é', 'e'))]).toEqual([accented.id, plain.id])
  })
})

describe('a caller', () => {
  it('finds only visible persons, and needs the right to list them', async () => {
    const hidden = await addPerson({ user_id: 1 })
    const seller = await addUser(server, newName('seller'), {
      permissions: ['leads', 'leads.create', 'contacts', 'contacts.persons'],
      view: 'individual',
    })
    const body = { title: 'Seen', lead_value: 1, person_id: { email: hidden.emails[0].value } }
    expect(await errorsOf('/leads', body, seller.post)).toEqual({
      person_id: [`No person has the e-mail address ${hidden.emails[0].value}.`],
    })
    const token = await server.as(1, ['leads:*'])
    const refused = await token.post('/leads', body)
    expect([refused.status, refused.body.required]).toEqual([403, 'persons:read'])
    expect(
      (await token.post('/leads', { ...body, person_id: null, user_id: { email: 'admin@example.com' } })).status,
    ).toBe(201)
  })
})

describe('a hidden record', () => {
  it('does not decide what the name of a visible one means', async () => {
    const name = newName('Ada')
    await addPerson({ name: name.replace('Ada', 'Ada L'), user_id: 1 })
    const seller = await addUser(server, newName('seller'), { view: 'individual' })
    const own = await seller.post('/contacts/persons', { name: name.replace('Ada', 'Adá L'), user_id: seller.id })
    expect(own.status, own.text).toBe(201)
    const body = { title: 'Own', lead_value: 1, person_id: { name: name.replace('Ada', 'Ada L') } }
    const { status, text, body: reply } = await seller.post('/leads', body)
    expect([status, reply.data?.person.id], text).toEqual([201, own.body.data.id])
  })

  it('does not show its pipeline, and a mass update says the same of a lead that is none', async () => {
    const pipeline = await post('/pipelines', { name: newName('Secret') })
    const lead = await post('/leads', { title: 'Hidden', lead_value: 1, user_id: 1, lead_pipeline_id: pipeline.id })
    const seller = await addUser(server, newName('seller'), { view: 'individual' })
    const errors = (id: number) => errorsOf('/leads/mass-update', { ids: [id], value: { name: 'zzzzz' } }, seller.post)
    expect(await errors(lead.id)).toEqual(await errors(999_999))
  })

  it('is not a hint for a token that may not list such records', async () => {
    const token = await server.as(1, ['leads:*'])
    const body = { title: 'Hint', lead_value: 1, user_id: { name: 'zzzz' } }
    expect((await errorsOf('/leads', body, token.post)).user_id).toEqual(['No user has the name zzzz.'])
    expect((await errorsOf('/leads', body)).user_id[0]).toMatch(/^No user has the name zzzz\. Known are /)
  })
})

describe('a mass update', () => {
  it('takes the stage of the pipeline of its leads, in its changes, too', async () => {
    const pipeline = await post('/pipelines', { name: newName('Own') })
    const lead = await post('/leads', { title: 'Own', lead_value: 1, lead_pipeline_id: pipeline.id })
    const changes = { lead_pipeline_stage_id: { name: 'Won' } }
    const { status, text } = await server.admin.post('/leads/mass-update', { ids: [lead.id], changes })
    expect(status, text).toBe(200)
    const { stage } = (await server.admin.get(`/leads/${lead.id}`)).body.data
    expect(pipeline.stages.map(({ id }: { id: number }) => id)).toContain(stage.id)
    expect(stage.code).toBe('won')
  })

  it.each([[[{ toString: 1, valueOf: 1 }]], [{ toString: 1, valueOf: 1 }], ['1'], [null]])(
    'refuses %j as ids beside a name',
    async (ids) => {
      expect((await server.admin.post('/leads/mass-update', { ids, value: { name: 'New' } })).status).toBe(422)
    },
  )
})

it('a repeated request with a key gets its reply, whatever the name means by now', async () => {
  const name = newName('Bob')
  const bob = await addPerson({ name })
  const send = () =>
    server.admin.post(
      '/leads',
      { title: 'Once', lead_value: 1, person_id: { name } },
      { headers: { 'idempotency-key': name } },
    )
  const first = await send()
  expect(first.status, first.text).toBe(201)
  await addPerson({ name })
  // The key is stored, but these are other requests: a dry run, and one with an error.
  const tried = async (more: object, headers: object = {}) =>
    server.admin.post(
      '/leads',
      { title: 'Once', lead_value: 1, person_id: { name }, ...more },
      { headers: { 'idempotency-key': name, ...headers } },
    )
  const ids = [expect.stringMatching(/^Several records have the name/)]
  expect((await tried({}, { 'accord-dry-run': 'true' })).body.errors).toEqual({ person_id: ids })
  const wrong = await tried({ title: '', user_id: { name: 'Nobody' } })
  expect([wrong.status, Object.keys(wrong.body.errors).sort()]).toEqual([422, ['person_id', 'title', 'user_id']])
  const second = await send()
  expect([second.status, second.text, second.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
  await server.admin.put(`/contacts/persons/${bob.id}`, { name: newName('Robert') })
  expect((await send()).text).toBe(first.text)
})

it('at most 200 names are sent in one body', async () => {
  const products = Array.from({ length: 200 }, (_each, index) => ({
    ...{ product_id: { name: `None ${index}` }, quantity: 1, price: 1 },
  }))
  const body = { title: 'Many', lead_value: 1, products, tag_ids: [{ name: 'One more' }] }
  expect((await errorsOf('/leads', body)).body).toEqual([
    'Must not have more than 200 references by name; send the ids of the others.',
  ])
})

it('a workflow stores ids only', async () => {
  const workflow = (value: unknown) => ({
    name: newName('Owner'),
    entity_type: 'leads',
    event: 'lead.create.after',
    actions: [{ id: 'update_lead', attribute: 'user_id', value }],
  })
  const refused = await server.admin.post('/settings/workflows', workflow({ email: 'admin@example.com' }))
  expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['actions.0.value']])
  expect((await server.admin.post('/settings/workflows', workflow(1))).status).toBe(201)
})

it('without strict validation, an object with an id and a name is refused, because they may differ', async () => {
  const lenient = await startServer({ config: { strict: false } })
  const person = (await lenient.admin.post('/contacts/persons', { name: 'Ann Old' })).body.data
  const body = (person_id: object) => ({ title: 'Back', lead_value: 1, person_id })
  const refused = await lenient.admin.post('/leads', body({ id: person.id + 1, name: 'Ann Old' }))
  expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['person_id.id']])
  expect((await lenient.admin.post('/leads', body({ name: 'Ann Old' }))).status).toBe(201)
  await lenient.close()
})
