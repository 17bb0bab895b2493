// Restoring a deleted record, for every resource: the record and its dependents are unchanged,
// missing references are reported, and callers can restore only records that they could see.
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { systemContext } from '../../../src/kernel/context.ts'
import { Veto } from '../../../src/kernel/write/events.ts'
import { cleanFiles } from '../../../src/resources/files/clean-up.ts'
import { prune } from '../../../src/resources/system/housekeeping.ts'
import { start } from '../../support/app.ts'
import { file, form } from '../../support/form.ts'
import { given } from '../../support/given.ts'
import { useServer } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

let refused: string | null = null
const veto = (event: { name: string }) => {
  if (event.name === refused) throw new Veto('Gone is gone.')
}
const server = useServer({ extensions: [(events) => void events.on('*', veto)] })
const make = given(server.admin)
beforeEach(() => {
  refused = null
})

type Json = Record<string, any>

const shown = async (path: string): Promise<Json> => (await server.admin.get(path)).body.data
const drop = async (path: string): Promise<void> => {
  const { status, text } = await server.admin.delete(path)
  expect(status, text).toBe(200)
}
const back = (path: string) => server.admin.post(`${path}/restore`)
/** Removes the only fields that a restore may change. */
const same = ({ version, updated_at, ...rest }: Json): Json => rest

async function quoteOn(leadId: number, personId: number): Promise<number> {
  const { db } = server.store
  const stamps = { created_at: start, updated_at: start }
  const { id } = await db
    .insertInto('quotes')
    .values({
      subject: 'Offer',
      subject_key: 'offer',
      person_id: personId,
      billing_address: '{}',
      expiry_date: '2026-04-01',
      ...stamps,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  await db.insertInto('lead_quotes').values({ lead_id: leadId, quote_id: id }).execute()
  return id
}

async function posted(path: string, sent: Json): Promise<Json> {
  const { status, body, text } = await server.admin.post(path, sent)
  expect(status, text).toBe(201)
  return body.data
}

describe('what refers to a record', () => {
  it('has another version when that is deleted, and when it comes back; nothing else has, and no event tells of it', async () => {
    const [product, organization, tag] = [await make.product(), await make.organization(), await make.tag()]
    const person = await make.person({ organization_id: organization.id, tag_ids: [tag.id] })
    const lead = await make.lead({ person_id: person.id, products: [{ product_id: product.id, quantity: 1 }] })
    const quote = await make.quote({
      person_id: person.id,
      items: [{ product_id: product.id, quantity: 1 }],
      lead_id: lead.id,
      tag_ids: [tag.id],
    })
    const guest = await make.person()
    const activity = await make.activity({
      lead_ids: [lead.id],
      product_ids: [product.id],
      quote_ids: [quote.id],
      person_ids: [guest.id],
      participants: { persons: [guest.id], users: [] },
    })
    const note = await make.activity({ type: 'note', comment: 'Its own', lead_ids: [lead.id] })
    const letter = { html: '<p>Hello</p>', to: ['ada@example.com'], is_draft: true }
    const email = await posted('/emails', { ...letter, lead_id: lead.id, person_id: guest.id })
    const answer = await posted('/emails', { ...letter, parent_id: email.id })
    const paths: Record<string, string> = {
      tag: `/tags/${tag.id}`,
      product: `/products/${product.id}`,
      organization: `/contacts/organizations/${organization.id}`,
      person: `/contacts/persons/${person.id}`,
      guest: `/contacts/persons/${guest.id}`,
      lead: `/leads/${lead.id}`,
      quote: `/quotes/${quote.id}`,
      activity: `/activities/${activity.id}`,
      note: `/activities/${note.id}`,
      email: `/emails/${email.id}`,
      answer: `/emails/${answer.id}`,
    }
    for (const [name, path] of Object.entries(paths)) expect((await server.admin.get(path)).status, name).toBe(200)
    const versions = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {}
      for (const [name, path] of Object.entries(paths)) {
        const { status, body } = await server.admin.get(path)
        if (status === 200) found[name] = body.data.version
      }
      return found
    }
    const cases: Record<string, string[]> = {
      product: ['lead', 'quote', 'activity'],
      organization: ['person'],
      guest: ['activity', 'email', 'answer'],
      quote: ['lead', 'activity'],
      lead: ['quote', 'activity', 'email', 'answer'],
      email: ['answer'],
    }
    for (const [name, changed] of Object.entries(cases)) {
      const path = paths[name] ?? ''
      const once = async (work: () => Promise<unknown>, also: readonly string[]) => {
        const before = await versions()
        await work()
        const after = await versions()
        const raised = Object.keys(after).filter((each) => each in before && after[each] !== before[each])
        expect([name, raised.sort()]).toEqual([name, [...also].sort()])
        for (const each of raised) expect(after[each]).toBe((before[each] ?? 0) + 1)
      }
      server.events()
      await once(async () => {
        // The first deletion of a mail moves it to the trash.
        for (let patience = 2; patience > 0 && (await server.admin.get(path)).status === 200; patience--)
          await drop(path)
      }, changed)
      expect(server.events().filter((event) => event.includes('.update.') && !event.startsWith('email.'))).toEqual([])
      await once(async () => expect((await back(path)).status).toBe(200), changed)
    }
  })

  it('is a web form that loses a field, and a stale If-Match is refused', async () => {
    const attribute = { code: 'sector', name: 'Sector', type: 'text', entity_type: 'persons' }
    const { id } = await posted('/settings/attributes', attribute)
    const form = await posted('/settings/web-forms', {
      title: 'Contact us',
      submit_button_label: 'Send',
      submit_success_action: 'message',
      submit_success_content: 'Thank you.',
      attributes: [{ attribute_id: id }],
    })
    expect(form.attributes.length).toBe(3)
    await drop(`/settings/attributes/${id}`)
    const path = `/settings/web-forms/${form.id}`
    expect(await shown(path)).toMatchObject({ attributes: [{}, {}], version: form.version + 1 })
    const match = { headers: { 'if-match': `"${form.version}"` } }
    expect((await server.admin.put(path, { title: 'Mine' }, match)).status).toBe(412)
  })
})

describe('restoreLead', () => {
  it('brings back a lead with its id, tags, products, quotes, activities and history', async () => {
    const [tag, product, person] = [await make.tag(), await make.product(), await make.person()]
    const sector = { code: 'sector', name: 'Sector', type: 'text', entity_type: 'leads' }
    expect((await server.admin.post('/settings/attributes', sector)).status).toBe(201)
    const lead = await make.lead({
      custom_attributes: { sector: 'retail' } as never,
      title: 'Deal',
      person_id: person.id,
      tag_ids: [tag.id],
      products: [{ product_id: product.id, quantity: 3 }],
    })
    const call = await make.activity({ lead_ids: [lead.id], person_ids: [person.id] })
    const quote = await quoteOn(lead.id, person.id)
    server.clock.advanceMs(60_000)
    const path = `/leads/${lead.id}`
    const before = await shown(path)
    const past = (await server.admin.get(`${path}/history`)).body.data
    await drop(path)
    server.events()

    const { status, body, headers } = await back(path)
    expect(status).toBe(200)
    expect(body.data.custom_attributes).toEqual({ sector: 'retail' })
    expect(body).toMatchObject({ message: 'Lead restored.', meta: { dropped: [] } })
    expect(same(body.data)).toEqual(same(before))
    expect(body.data).toMatchObject({ version: before.version + 1, updated_at: '2026-03-01T09:31:00.000Z' })
    expect(headers.etag).toBe(`"${before.version + 1}"`)
    expect(await shown(path)).toEqual(body.data)
    const restored = server.seen.splice(0).map((event) => [event.name, event.entityId, event.restored])
    expect(restored).toEqual([
      ['lead.create.before', lead.id, true],
      ['lead.create.after', lead.id, true],
      ['lead.restore', lead.id, true],
    ])
    const { db } = server.store
    expect(await db.selectFrom('lead_quotes').selectAll().execute()).toEqual([{ lead_id: lead.id, quote_id: quote }])
    expect((await shown(`/activities/${call.id}`)).lead_ids).toEqual([lead.id])
    const now = (await server.admin.get(`${path}/history`)).body.data
    expect(now.slice(2)).toEqual(past)
    expect(now.slice(0, 2)).toMatchObject([
      { name: 'lead.create.after', restored: true },
      { name: 'lead.delete.after', restored: false },
    ])
  })

  it('brings back the activities that went with it, each with its own pair of events', async () => {
    const [lead, organization] = [await make.lead(), await make.organization()]
    const note = await make.activity({ type: 'note', comment: 'Remember', lead_ids: [lead.id] })
    const shared = await make.activity({ lead_ids: [lead.id], organization_ids: [organization.id] })
    const [leadBefore, noteBefore] = [await shown(`/leads/${lead.id}`), await shown(`/activities/${note.id}`)]
    await drop(`/leads/${lead.id}`)
    expect((await server.admin.get(`/activities/${note.id}`)).status).toBe(404)
    server.events()
    const { body } = await back(`/leads/${lead.id}`)
    expect(server.events()).toEqual([
      'lead.create.before',
      'activity.create.before',
      'activity.create.after',
      'activity.restore',
      'lead.create.after',
      'lead.restore',
    ])
    expect(same(body.data)).toEqual(same(leadBefore))
    expect(same(await shown(`/activities/${note.id}`))).toEqual(same(noteBefore))
    expect((await shown(`/activities/${shared.id}`)).lead_ids).toEqual([lead.id])
  })

  it('leaves alone what has had a life of its own since', async () => {
    const lead = await make.lead()
    const [kept, gone] = [
      await make.activity({ lead_ids: [lead.id] }),
      await make.activity({ lead_ids: [lead.id], title: 'Lunch' }),
    ]
    await drop(`/leads/${lead.id}`)
    const early = await back(`/activities/${kept.id}`)
    expect(early.body.meta.dropped).toEqual([{ entity_type: 'leads', id: lead.id, field: 'leads' }])
    await back(`/activities/${gone.id}`)
    await drop(`/activities/${gone.id}`)
    server.events()
    const { body } = await back(`/leads/${lead.id}`)
    expect(body.meta.dropped).toEqual([{ entity_type: 'activities', id: gone.id, field: 'activities' }])
    expect(server.events()).toEqual(['lead.create.before', 'lead.create.after', 'lead.restore'])
    expect(await shown(`/activities/${kept.id}`)).toMatchObject({
      lead_ids: [lead.id],
      version: early.body.data.version + 1,
    })
    expect((await server.admin.get(`/activities/${gone.id}`)).status).toBe(404)
  })

  it('leaves out and lists what is gone: tags, the owner, the person; a product line keeps its snapshot', async () => {
    const bob = await addUser(server, 'Bob')
    const [tag, product, person] = [await make.tag(), await make.product(), await make.person()]
    const { id } = await make.lead({
      user_id: bob.id,
      person_id: person.id,
      tag_ids: [tag.id],
      products: [{ product_id: product.id }],
    })
    await drop(`/leads/${id}`)
    await drop(`/tags/${tag.id}`)
    await drop(`/products/${product.id}`)
    await drop(`/contacts/persons/${person.id}`)
    await drop(`/settings/users/${bob.id}`)
    const { status, body } = await back(`/leads/${id}`)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ user_id: null, person_id: null, tags: [] })
    expect(body.data.products).toMatchObject([{ product_id: null, name: product.name, sku: product.sku }])
    expect(body.meta.dropped).toEqual([
      { entity_type: 'persons', id: person.id, field: 'person_id' },
      { entity_type: 'users', id: bob.id, field: 'user_id' },
      { entity_type: 'products', id: product.id, field: 'lead_products.product_id' },
      { entity_type: 'tags', id: tag.id, field: 'tags' },
    ])
  })

  it('takes the defaults of a new lead for a source, a type and a pipeline that are gone, and stays won', async () => {
    const [source, type, pipeline] = [
      await make.source(),
      await make.type(),
      await make.pipeline({ stages: undefined as never }),
    ]
    const won = pipeline.stages.find(({ code }) => code === 'won')?.id ?? 0
    const { id } = await make.lead({ lead_source_id: source.id, lead_type_id: type.id, lead_pipeline_stage_id: won })
    const before = await shown(`/leads/${id}`)
    await drop(`/leads/${id}`)
    for (const path of [`/sources/${source.id}`, `/types/${type.id}`, `/pipelines/${pipeline.id}`]) await drop(path)
    const { body } = await back(`/leads/${id}`)
    expect(body.data).toMatchObject({
      source: { name: 'Direct' },
      type: { name: 'New Business' },
      pipeline: { id: 1 },
      stage: { code: 'won' },
      status: 2,
      closed_at: before.closed_at,
    })
    expect(body.meta.dropped).toEqual([
      { entity_type: 'pipelines', id: pipeline.id, field: 'lead_pipeline_id' },
      { entity_type: 'stages', id: won, field: 'lead_pipeline_stage_id' },
      { entity_type: 'sources', id: source.id, field: 'lead_source_id' },
      { entity_type: 'types', id: type.id, field: 'lead_type_id' },
    ])
  })

  it('begins anew in its pipeline when its stage is gone', async () => {
    const pipeline = await make.pipeline({ stages: [{ name: 'Odd', code: 'odd', probability: 5 }] })
    const odd = pipeline.stages.find(({ code }) => code === 'odd')?.id ?? 0
    const { id } = await make.lead({ lead_pipeline_stage_id: odd })
    await drop(`/leads/${id}`)
    const stages = pipeline.stages.filter((stage) => stage.id !== odd).map((stage) => ({ id: stage.id }))
    expect((await server.admin.put(`/pipelines/${pipeline.id}`, { stages })).status).toBe(200)
    const { body } = await back(`/leads/${id}`)
    expect(body.data).toMatchObject({ lead_pipeline_id: pipeline.id, stage: { code: 'new' }, status: 1 })
    expect(body.meta.dropped).toEqual([{ entity_type: 'stages', id: odd, field: 'lead_pipeline_stage_id' }])
  })

  it('is possible for 30 days when events are kept for fewer', async () => {
    const { admin, app, store } = server
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const [one, other] = [await make.lead({ user_id: bob.id }), await make.lead()]
    const attribute = (body: Json) =>
      admin.post('/settings/attributes', { entity_type: 'leads', type: 'text', ...body })
    await attribute({ code: 'kept', name: 'Kept' })
    const again = (await attribute({ code: 'again', name: 'Again' })).body.data
    await admin.put(`/leads/${one.id}`, { custom_attributes: { kept: 'yes', again: 'no' } })
    await drop(`/leads/${one.id}`)
    await drop(`/leads/${other.id}`)
    server.clock.advanceMs(1000)
    await drop(`/settings/attributes/${again.id}`)
    expect((await attribute({ code: 'again', name: 'Again' })).status).toBe(201)
    const days = app.services.config.eventsRetentionDays
    Object.assign(app.services.config, { eventsRetentionDays: 1 })
    server.clock.advanceMs(29 * 24 * 3_600_000)
    const run = { id: 1, attempt: 1, isLast: false, signal: new AbortController().signal, holdsLease: async () => true }
    await prune.run(systemContext(app.services, 'cli'), { due: '' }, run)
    Object.assign(app.services.config, { eventsRetentionDays: days })
    expect(await store.db.selectFrom('events').select('id').execute()).toEqual([])
    expect((await bob.post(`/leads/${other.id}/restore`)).status).toBe(404)
    const { status, body, text } = await bob.post(`/leads/${one.id}/restore`)
    expect(status, text).toBe(200)
    expect(body.data.custom_attributes).toEqual({ kept: 'yes', again: null })
  })

  it('answers 404 for what never was, and after 30 days', async () => {
    expect((await back('/leads/99')).status).toBe(404)
    const { id } = await make.lead()
    await drop(`/leads/${id}`)
    server.clock.advanceMs(30 * 24 * 3_600_000 + 1)
    expect((await back(`/leads/${id}`)).status).toBe(404)
    server.clock.advanceMs(-1)
    expect((await back(`/leads/${id}`)).status).toBe(200)
  })

  it('answers 409 for a lead that exists, 404 for one that exists out of sight', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const { id } = await make.lead()
    server.events()
    expect((await back(`/leads/${id}`)).body.code).toBe('state_conflict')
    expect((await bob.post(`/leads/${id}/restore`)).status).toBe(404)
    expect(server.events()).toEqual([])
  })

  it('is for those who could see the lead when it was deleted', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const [mine, others] = [await make.lead({ user_id: bob.id }), await make.lead()]
    await drop(`/leads/${mine.id}`)
    await drop(`/leads/${others.id}`)
    expect((await bob.post(`/leads/${others.id}/restore`)).status).toBe(404)
    expect((await bob.post(`/leads/${mine.id}/restore`)).status).toBe(200)
  })

  it('gives version and ETag that were never seen before, and refuses an If-Match of another version', async () => {
    const { id, version } = await make.lead()
    await drop(`/leads/${id}`)
    const wrong = await server.admin.post(`/leads/${id}/restore`, undefined, { headers: { 'if-match': '"7"' } })
    expect(wrong.body.code).toBe('version_mismatch')
    const right = await server.admin.post(`/leads/${id}/restore`, undefined, {
      headers: { 'if-match': `"${version}"` },
    })
    expect(right.headers.etag).toBe(`"${version + 1}"`)
  })

  it('changes nothing in a dry run, and nothing when a listener refuses it or one of its activities', async () => {
    const lead = await make.lead()
    const { id } = await make.activity({ lead_ids: [lead.id] })
    await drop(`/leads/${lead.id}`)
    server.events()
    const rehearsal = await server.admin.post(`/leads/${lead.id}/restore`, undefined, {
      headers: { 'accord-dry-run': 'true' },
    })
    expect([rehearsal.status, rehearsal.body.data.id, server.events()]).toEqual([200, lead.id, []])
    for (const name of ['lead.create.before', 'activity.create.before']) {
      refused = name
      expect((await back(`/leads/${lead.id}`)).body.code).toBe('event_vetoed')
      for (const path of [`/leads/${lead.id}`, `/activities/${id}`])
        expect((await server.admin.get(path)).status).toBe(404)
    }
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
  })

  it('works again after the next deletion, from what that one took', async () => {
    const { id } = await make.lead({ title: 'First' })
    await drop(`/leads/${id}`)
    await back(`/leads/${id}`)
    await server.admin.put(`/leads/${id}`, { title: 'Second' })
    await drop(`/leads/${id}`)
    expect((await back(`/leads/${id}`)).body.data).toMatchObject({ id, title: 'Second', version: 4 })
  })
})

describe('restoreOrganization', () => {
  it('is named again by its persons, but not by those who have found another', async () => {
    const [old, other] = [await make.organization(), await make.organization()]
    const [loyal, moved] = [
      await make.person({ organization_id: old.id }),
      await make.person({ organization_id: old.id }),
    ]
    await drop(`/contacts/organizations/${old.id}`)
    await server.admin.put(`/contacts/persons/${moved.id}`, { organization_id: other.id })
    expect((await back(`/contacts/organizations/${old.id}`)).body.data.persons_count).toBe(1)
    expect((await shown(`/contacts/persons/${loyal.id}`)).organization_id).toBe(old.id)
    expect((await shown(`/contacts/persons/${moved.id}`)).organization_id).toBe(other.id)
  })

  it('answers 409 when its name was taken, and tells by whom only to those who may know', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const { id } = await make.organization({ name: 'Acme', user_id: bob.id })
    await drop(`/contacts/organizations/${id}`)
    const other = await make.organization({ name: 'ACME' })
    server.events()
    const refusal = await back(`/contacts/organizations/${id}`)
    expect(refusal.body).toMatchObject({
      code: 'unique_violation',
      errors: { name: ['Another organization has this value.'] },
      conflicts: [{ entity_type: 'organizations', id: other.id, field: 'name' }],
    })
    expect((await bob.post(`/contacts/organizations/${id}/restore`)).body.conflicts).toEqual([
      { entity_type: 'organizations', id: null, field: 'name' },
    ])
    expect(server.events()).toEqual([])
  })
})

describe('restorePerson', () => {
  it('answers 409 for every e-mail that was taken, and keeps the others its own; numbers may be shared', async () => {
    const emails = ['one@example.com', 'Two@Example.com'].map((value) => ({ value }))
    const person = await make.person({ emails, contact_numbers: [{ value: '+44 20 7946 0001' }] })
    await drop(`/contacts/persons/${person.id}`)
    const thief = await make.person({
      emails: [{ value: 'two@example.com' }],
      contact_numbers: [{ value: '+442079460001' }],
    })
    const { status, body } = await back(`/contacts/persons/${person.id}`)
    expect(status).toBe(409)
    expect(body.conflicts.map(({ id, field }: Json) => [id, field]).sort()).toEqual([[thief.id, 'emails.1.value']])
    await drop(`/contacts/persons/${thief.id}`)
    expect((await back(`/contacts/persons/${person.id}`)).status).toBe(200)
    const again = await server.admin.post('/contacts/persons', { name: 'Eve', emails: [{ value: 'ONE@example.com' }] })
    expect(again.body).toMatchObject({ code: 'unique_violation', conflicts: [{ id: person.id }] })
    const found = await server.admin.get('/contacts/persons?phone=442079460001')
    expect(found.body.data.map(({ id }: Json) => id)).toEqual([person.id])
  })

  it('answers 409 for a value of an attribute of the installation that must be unique', async () => {
    const vat = { entity_type: 'persons', code: 'vat', name: 'VAT number', type: 'text', is_unique: true }
    const { id } = (await server.admin.post('/settings/attributes', vat)).body.data
    const person = await make.person({ custom_attributes: { vat: 'GB1' } })
    await drop(`/contacts/persons/${person.id}`)
    const other = await make.person({ custom_attributes: { vat: 'gb1' } })
    const { body } = await back(`/contacts/persons/${person.id}`)
    expect(body.conflicts).toEqual([{ entity_type: 'persons', id: other.id, field: 'custom_attributes.vat' }])
    // Without the attribute, its value no longer has to be unique.
    await server.admin.delete(`/settings/attributes/${id}`)
    expect((await back(`/contacts/persons/${person.id}`)).status).toBe(200)
  })
})

describe('restoreProduct', () => {
  it('is on the lines of leads again, and answers 409 when its SKU was taken', async () => {
    const product = await make.product({ sku: 'GTX-1' })
    const lead = await make.lead({ products: [{ product_id: product.id }] })
    await drop(`/products/${product.id}`)
    expect((await shown(`/leads/${lead.id}`)).products[0].product_id).toBeNull()
    const other = await make.product({ sku: 'gtx-1' })
    const refusal = await back(`/products/${product.id}`)
    expect(refusal.body.conflicts).toEqual([{ entity_type: 'products', id: other.id, field: 'sku' }])
    await server.admin.put(`/products/${other.id}`, { sku: 'GTX-2' })
    expect((await back(`/products/${product.id}`)).status).toBe(200)
    expect((await shown(`/leads/${lead.id}`)).products[0].product_id).toBe(product.id)
  })
})

describe('restoreActivity', () => {
  it('brings back participants and links, and lists those who are gone', async () => {
    const [bob, person, lead] = [await addUser(server, 'Bob'), await make.person(), await make.lead()]
    const { id } = await make.activity({
      lead_ids: [lead.id],
      participants: { users: [bob.id], persons: [person.id] },
    })
    await drop(`/activities/${id}`)
    await drop(`/settings/users/${bob.id}`)
    const { body } = await back(`/activities/${id}`)
    expect(body.data).toMatchObject({ lead_ids: [lead.id], participants: [{ user: null, person: { id: person.id } }] })
    expect(body.meta.dropped).toEqual([{ entity_type: 'users', id: bob.id, field: 'activity_participants.user_id' }])
  })
})

describe('restoreQuote', () => {
  it('brings back items, leads and tags; a lead that is gone is left out', async () => {
    const [kept, gone, tag, product] = [await make.lead(), await make.lead(), await make.tag(), await make.product()]
    const quote = await make.quote({
      tag_ids: [tag.id],
      items: [{ product_id: product.id, quantity: 2, price: 10.5 }],
    } as never)
    for (const lead of [kept, gone])
      expect((await server.admin.post(`/quotes/${quote.id}/leads`, { lead_id: lead.id })).status).toBe(200)
    const before = await shown(`/quotes/${quote.id}`)
    await drop(`/quotes/${quote.id}`)
    await drop(`/leads/${gone.id}`)
    server.events()
    const { body } = await back(`/quotes/${quote.id}`)
    expect(server.events()).toEqual(['quote.create.before', 'quote.create.after', 'quote.restore'])
    expect(body.meta.dropped).toEqual([{ entity_type: 'leads', id: gone.id, field: 'leads' }])
    const leads = before.leads.filter(({ id }: Json) => id === kept.id)
    expect(same(body.data)).toEqual({ ...same(before), leads })
  })

  it('answers 409 when its person is gone, and changes nothing', async () => {
    const person = await make.person()
    const { id } = await make.quote({ person_id: person.id })
    await drop(`/quotes/${id}`)
    await drop(`/contacts/persons/${person.id}`)
    server.events()
    const { status, body } = await back(`/quotes/${id}`)
    expect([status, body.code]).toEqual([409, 'state_conflict'])
    expect(body.detail).toContain(`persons ${person.id} is gone`)
    expect(server.events()).toEqual([])
    await back(`/contacts/persons/${person.id}`)
    expect((await back(`/quotes/${id}`)).status).toBe(200)
  })
})

describe('a link between two deleted records', () => {
  const letter = { html: '<p>Hello</p>', to: ['ada@example.com'], is_draft: true }

  /** Each case makes two linked records, and returns their paths and the link that each shows. */
  const cases: Record<string, () => Promise<[one: string, other: string, link: () => Promise<unknown>]>> = {
    'a quote and its lead': async () => {
      const lead = await make.lead()
      const quote = await make.quote({ lead_id: lead.id })
      const link = async () => [
        (await shown(`/quotes/${quote.id}`)).leads.map(({ id }: Json) => id),
        (await shown(`/leads/${lead.id}`)).quotes_count,
      ]
      return [`/leads/${lead.id}`, `/quotes/${quote.id}`, link]
    },
    'an e-mail and its lead': async () => {
      const lead = await make.lead()
      const mail = await posted('/emails', { ...letter, lead_id: lead.id })
      const link = async () => (await shown(`/emails/${mail.id}`)).lead_id
      return [`/leads/${lead.id}`, `/emails/${mail.id}?type=delete`, link]
    },
    'an activity and its product': async () => {
      const product = await make.product()
      const activity = await make.activity({ product_ids: [product.id] })
      const link = async () => (await shown(`/activities/${activity.id}`)).product_ids
      return [`/products/${product.id}`, `/activities/${activity.id}`, link]
    },
    'the line of a lead and its product': async () => {
      const product = await make.product()
      const lead = await make.lead({ products: [{ product_id: product.id }] })
      const link = async () => (await shown(`/leads/${lead.id}`)).products.map(({ product_id }: Json) => product_id)
      return [`/products/${product.id}`, `/leads/${lead.id}`, link]
    },
    'the line of a quote and its product': async () => {
      const product = await make.product()
      const quote = await make.quote({ items: [{ product_id: product.id, quantity: 1 }] })
      const link = async () => (await shown(`/quotes/${quote.id}`)).items.map(({ product_id }: Json) => product_id)
      return [`/products/${product.id}`, `/quotes/${quote.id}`, link]
    },
    'an activity and a participant': async () => {
      const person = await make.person()
      const product = await make.product()
      const activity = await make.activity({
        product_ids: [product.id],
        participants: { persons: [person.id], users: [] },
      })
      const link = async () =>
        (await shown(`/activities/${activity.id}`)).participants.map(({ person }: Json) => person?.id)
      return [`/contacts/persons/${person.id}`, `/activities/${activity.id}`, link]
    },
    'a person and the organization': async () => {
      const organization = await make.organization()
      const person = await make.person({ organization_id: organization.id })
      const link = async () => (await shown(`/contacts/persons/${person.id}`)).organization_id
      return [`/contacts/organizations/${organization.id}`, `/contacts/persons/${person.id}`, link]
    },
  }

  it.each(Object.keys(cases))('comes back when both are restored, in any order: %s', async (name) => {
    for (const deletesFirst of [0, 1])
      for (const restoresFirst of [0, 1]) {
        const [one, other, link] = (await cases[name]?.()) ?? []
        const paths = [one, other] as [string, string]
        const before = await link?.()
        // Twice, because the second deletion archives what the first restore brought back.
        for (const _round of [1, 2]) {
          await drop(paths[deletesFirst] ?? '')
          await drop(paths[1 - deletesFirst] ?? '')
          for (const index of [restoresFirst, 1 - restoresFirst]) {
            const { status, body, text } = await back((paths[index] ?? '').replace(/\?.*/, ''))
            expect(status, text).toBe(200)
            const listed = body.meta.dropped.map((each: Json) => JSON.stringify(each))
            expect(new Set(listed).size).toBe(listed.length)
          }
          expect([name, deletesFirst, restoresFirst, await link?.()]).toEqual([
            name,
            deletesFirst,
            restoresFirst,
            before,
          ])
        }
      }
  })

  it('comes back when a third record, deleted between them, is restored last', async () => {
    const [product, lead] = [await make.product(), await make.lead()]
    const activity = await make.activity({ lead_ids: [lead.id], product_ids: [product.id] })
    const paths = [`/products/${product.id}`, `/leads/${lead.id}`]
    await drop(paths[0] ?? '')
    await drop(paths[1] ?? '')
    expect((await server.admin.get(`/activities/${activity.id}`)).status).toBe(404)
    const { body } = await back(paths[0] ?? '')
    expect(body.meta.dropped).toEqual([{ entity_type: 'activities', id: activity.id, field: 'activities' }])
    await back(paths[1] ?? '')
    expect(await shown(`/activities/${activity.id}`)).toMatchObject({ lead_ids: [lead.id], product_ids: [product.id] })
  })

  it('stays as it was changed between the restores', async () => {
    const [gone, other] = [await make.organization(), await make.organization()]
    const person = await make.person({ organization_id: gone.id })
    await drop(`/contacts/persons/${person.id}`)
    await drop(`/contacts/organizations/${gone.id}`)
    await back(`/contacts/persons/${person.id}`)
    const changed = await server.admin.put(`/contacts/persons/${person.id}`, { organization_id: other.id })
    expect(changed.status, changed.text).toBe(200)
    await back(`/contacts/organizations/${gone.id}`)
    expect((await shown(`/contacts/persons/${person.id}`)).organization_id).toBe(other.id)
  })
})

describe('the files of a deleted record', () => {
  const upload = async (text: string): Promise<number> => {
    const { body, headers } = await form({ file: file('a.txt', text) })
    return (await server.admin.post('/files', body, { headers })).body.data.id
  }

  it('come back with it, attached or in a custom attribute, as long as it can be restored', async () => {
    await server.admin.post('/settings/attributes', {
      code: 'contract',
      name: 'Contract',
      type: 'file',
      entity_type: 'leads',
    })
    const contract = await upload('signed')
    const lead = await make.lead({ custom_attributes: { contract } } as never)
    const note = await make.activity({ type: 'file', file_ids: [await upload('read me')] } as never)
    const before = [await shown(`/leads/${lead.id}`), await shown(`/activities/${note.id}`)]
    await drop(`/leads/${lead.id}`)
    await drop(`/activities/${note.id}`)
    expect((await server.admin.get(`/files/${contract}`)).status).toBe(404)
    server.clock.advanceMs(29 * 24 * 3_600_000)
    await cleanFiles(systemContext(server.app.services, 'cli'))
    for (const [index, path] of [`/leads/${lead.id}`, `/activities/${note.id}`].entries()) {
      const { body } = await back(path)
      expect(body.meta.dropped).toEqual([])
      const { rotten_days: _now, is_rotten: _then, ...rest } = same(body.data)
      expect(same(before[index] ?? {})).toMatchObject(rest)
    }
    expect((await server.admin.get(`/files/${contract}/download`)).text).toBe('signed')
  })

  it('go for good with the chance to restore it, and not before', async () => {
    const lead = await make.activity({ type: 'file', file_ids: [await upload('read me')] } as never)
    await drop(`/activities/${lead.id}`)
    const files = () => server.store.db.selectFrom('files').select('id').execute()
    const clean = () => cleanFiles(systemContext(server.app.services, 'cli'))
    server.clock.advanceMs(30 * 24 * 3_600_000)
    await clean()
    expect(await files()).toHaveLength(1)
    server.clock.advanceMs(1)
    await clean()
    expect(await files()).toEqual([])
  })
})

describe('what custom attributes name', () => {
  it('is left out and listed when it is gone: an option, a record; a deleted attribute leaves no trace', async () => {
    const { admin } = server
    const define = async (body: Json): Promise<Json> =>
      (await admin.post('/settings/attributes', { entity_type: 'leads', ...body })).body.data
    const options = [{ name: 'A' }, { name: 'B' }]
    const sector = await define({ code: 'sector', name: 'Sector', type: 'multiselect', options })
    const partner = await define({ code: 'partner', name: 'Partner', type: 'lookup', lookup_type: 'organizations' })
    const note = await define({ code: 'note', name: 'Note', type: 'text' })
    const organization = await make.organization()
    const [a, b] = sector.options.map(({ id }: Json) => id)
    const values = { sector: [a, b], partner: organization.id, note: 'x' }
    const lead = await make.lead({ custom_attributes: values } as never)
    await drop(`/leads/${lead.id}`)
    await drop(`/contacts/organizations/${organization.id}`)
    await drop(`/settings/attributes/${note.id}`)
    const kept = await admin.put(`/settings/attributes/${sector.id}`, { options: [{ id: b }] })
    expect(kept.status, kept.text).toBe(200)
    const { body } = await back(`/leads/${lead.id}`)
    expect(body.data.custom_attributes).toEqual({ sector: [b], partner: null })
    expect(body.meta.dropped).toEqual([
      { entity_type: 'options', id: a, field: 'custom_attributes.sector' },
      { entity_type: 'organizations', id: organization.id, field: 'custom_attributes.partner' },
    ])
    expect(partner.code).toBe('partner')
  })
})

describe('deleting and restoring', () => {
  it('is nothing but a new version, for any record', async () => {
    const [tag, other] = [await make.tag(), await make.tag()]
    const [product, organization, person] = [await make.product(), await make.organization(), await make.person()]
    const links = { tag_ids: [tag.id, other.id] }
    const makers = {
      leads: (body: Json) =>
        make.lead({ ...body, ...links, person_id: person.id, products: [{ product_id: product.id }] } as never),
      'contacts/persons': ({ description: _none, ...body }: Json) =>
        make.person({ ...links, organization_id: organization.id, name: body.title.slice(0, 100) }),
      'contacts/organizations': (body: Json) => make.organization({ ...links, name: body.title.slice(0, 100) }),
      products: ({ title, description }: Json) => make.product({ ...links, name: title, description }),
      activities: ({ title, description }: Json) =>
        make.activity({ title, comment: description, person_ids: [person.id], participants: { users: [1] } } as never),
    }
    const text = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
      .filter((each) => each.trim() !== '' && !/\p{C}/u.test(each))
    const kinds = fc.constantFrom(...(Object.keys(makers) as (keyof typeof makers)[]))
    let count = 0
    await fc.assert(
      fc.asyncProperty(kinds, text, text, async (kind, title, description) => {
        const { id } = await makers[kind]({ title: `${title} ${++count}`, description })
        const before = await shown(`/${kind}/${id}`)
        await drop(`/${kind}/${id}`)
        const { body } = await back(`/${kind}/${id}`)
        expect(body.meta.dropped).toEqual([])
        expect(same(await shown(`/${kind}/${id}`))).toEqual(same(before))
        expect(body.data.version).toBe(before.version + 1)
      }),
      { numRuns: 25 },
    )
  })
})

describe('restoreEmail', () => {
  const letter = { html: '<p>Hello</p>', to: ['ada@example.com'], is_draft: true }
  const discard = async (id: number): Promise<void> => drop(`/emails/${id}?type=delete`)

  it('brings back folders, links, tags and attachments; its answers name it again', async () => {
    const [lead, tag] = [await make.lead(), await make.tag()]
    const { body, headers } = await form({ file: file('a.txt', 'read me') })
    const upload = (await server.admin.post('/files', body, { headers })).body.data
    const sent = { ...letter, lead_id: lead.id, tag_ids: [tag.id], attachment_ids: [upload.id], folders: ['starred'] }
    const mail = (await server.admin.post('/emails', sent)).body.data
    const answer = (await server.admin.post('/emails', { ...letter, parent_id: mail.id })).body.data
    const before = await shown(`/emails/${mail.id}`)
    expect([before.lead_id, before.attachments.length, before.tags.length]).toEqual([lead.id, 1, 1])
    await discard(mail.id)
    expect((await shown(`/emails/${answer.id}`)).parent_id).toBeNull()
    server.events()
    const { body: restored } = await back(`/emails/${mail.id}`)
    expect(server.events()).toEqual(['email.create.before', 'email.create.after', 'email.restore'])
    expect(restored.meta.dropped).toEqual([])
    expect(same(restored.data)).toEqual(same(before))
    expect((await shown(`/emails/${answer.id}`)).parent_id).toBe(mail.id)
  })

  it('is about no lead when that is gone, and answers 409 when its Message-ID came in again', async () => {
    const lead = await make.lead()
    const mail = (await server.admin.post('/emails', { ...letter, lead_id: lead.id })).body.data
    await discard(mail.id)
    await drop(`/leads/${lead.id}`)
    const other = (await server.admin.post('/emails', letter)).body.data
    const { db } = server.store
    const known = db.updateTable('emails').where('id', '=', other.id)
    await known.set({ message_id: mail.message_id, message_id_key: mail.message_id }).execute()
    expect((await back(`/emails/${mail.id}`)).body.conflicts).toEqual([
      { entity_type: 'emails', id: other.id, field: 'message_id' },
    ])
    await known.set({ message_id: 'x', message_id_key: 'x' }).execute()
    const { body } = await back(`/emails/${mail.id}`)
    expect(body.data.lead_id).toBeNull()
    expect(body.meta.dropped).toEqual([{ entity_type: 'leads', id: lead.id, field: 'lead_id' }])
  })

  it('is, as its history is, for those who may open one of the folders it was in', async () => {
    const keys = ['mail', 'mail.view', 'mail.delete']
    const clerk = await addUser(server, 'Clerk', { permissions: [...keys, 'mail.inbox'] })
    const writer = await addUser(server, 'Writer', { permissions: [...keys, 'mail.draft'] })
    const { id } = (await server.admin.post('/emails', letter)).body.data
    await discard(id)
    expect((await clerk.get(`/emails/${id}/history`)).status).toBe(404)
    expect((await clerk.post(`/emails/${id}/restore`)).status).toBe(404)
    expect((await writer.get(`/emails/${id}/history`)).status).toBe(200)
    expect((await writer.post(`/emails/${id}/restore`)).status).toBe(200)
  })
})
