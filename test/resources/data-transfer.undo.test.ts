// The undo of an import takes back what was not changed since, names the rest, and loses or repeats
// nothing when it is interrupted.
import { beforeEach, describe, expect, it } from 'vitest'
import { type Emitter, Veto } from '../../src/kernel/write/events.ts'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { csvOf, importing, path } from '../support/importing.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

/** The names of persons whose deletion a listener refuses. */
const kept = new Set<unknown>()
const refuse = (events: Emitter) =>
  events.on('contacts.person.delete.before', ({ entity }) => {
    if (kept.has(entity?.name)) throw new Veto('This one stays.')
  })
const server = useServer({ extensions: [refuse] })
beforeEach(() => kept.clear())

const using = () => importing(server.admin)
const get = async (at: string, caller: Caller = server.admin) => {
  const { status, body, text } = await caller.get(at)
  if (status !== 200) throw new Error(text)
  return body.data
}
const names = async (at: string): Promise<string[]> =>
  (await get(`${at}?per_page=100&sort=id`)).map(({ name, title }: Record<string, string>) => name ?? title)
const undo = (id: number, caller: Caller = server.admin, headers: Record<string, string> = {}) =>
  caller.post(`${path}/${id}/undo`, undefined, { headers })
/** Undoes the import in the background. Returns its counts and the reasons of what stays. */
async function undone(id: number) {
  const { status, body, text } = await undo(id)
  if (status !== 202) throw new Error(text)
  expect(body.data).toMatchObject({ state: 'undoing', undo: { progress: 0, completed_at: null } })
  await server.work()
  const shown = await get(`${path}/${id}`)
  expect(shown).toMatchObject({ state: 'undone', undo: { progress: 100 } })
  const { deleted, reverted, restored, remaining } = shown.undo
  const rest = await get(`${path}/${id}/undo?per_page=100`)
  expect(rest).toHaveLength(remaining)
  return { counts: { deleted, reverted, restored }, rest }
}
const people = (...rows: string[][]) => csvOf([['name', 'emails', 'job_title', 'organization_name', 'tags'], ...rows])
const idOf = async (name: string): Promise<number> => (await get(`/contacts/persons?name=${name}`))[0].id

describe('created records', () => {
  it('are deleted with the organizations and tags that their rows created, and can be restored', async () => {
    const { id } = await using().run(
      'persons',
      people(['Ada', 'ada@example.com', '', 'Royal Society', 'VIP'], ['Grace', 'grace@example.com', '', 'Navy', 'VIP']),
    )
    const ada = await idOf('Ada')
    expect(await undone(id)).toEqual({ counts: { deleted: 5, reverted: 0, restored: 0 }, rest: [] })
    for (const at of ['/contacts/persons', '/contacts/organizations', '/tags']) expect(await names(at)).toEqual([])
    const { body } = await server.admin.get(`/events?request_id=undo-${id}&name=contacts.person.delete.after`)
    expect(body.data).toMatchObject([
      { origin: 'import', actor: { id: 1 } },
      { origin: 'import', actor: { id: 1 } },
    ])
    expect((await server.admin.post(`/contacts/persons/${ada}/restore`)).status).toBe(200)
    expect((await undo(id)).body).toMatchObject({ code: 'state_conflict' })
    expect((await server.admin.post(`${path}/${id}/start`)).status).toBe(409)
  })

  it('stay when they were edited, are in use, are gone, or must not be deleted', async () => {
    const rows = ['Ada', 'Bea', 'Cleo', 'Dora', 'Elsa', 'Fay', 'Gina'].map((name) => [
      name,
      `${name}@example.com`,
      '',
      '',
      '',
    ])
    const { id } = await using().run('persons', people(...rows))
    const at = async (name: string) => `/contacts/persons/${await idOf(name)}`
    await server.admin.put(await at('Ada'), { job_title: 'Countess' })
    await given(server.admin).lead({ title: 'Engines', person_id: await idOf('Bea') })
    await given(server.admin).quote({ person_id: await idOf('Cleo') })
    await given(server.admin).activity({
      type: 'note',
      comment: 'Met',
      participants: [{ person_id: await idOf('Dora') }],
    })
    await server.admin.delete(await at('Elsa'))
    kept.add('Fay')
    const gone = await idOf('Gina')
    const { counts, rest } = await undone(id)
    expect(counts).toEqual({ deleted: 1, reverted: 0, restored: 0 })
    expect(Object.fromEntries(rest.map(({ message, reason }: Record<string, string>) => [message, reason]))).toEqual({
      'The record was changed since the import.': 'edited',
      'Other records refer to it: leads.': 'in_use',
      'Other records refer to it: quotes.': 'in_use',
      'Other records refer to it: activities.': 'in_use',
      'The record was deleted, or you do not see it.': 'gone',
      'This one stays.': 'refused',
    })
    expect((await server.admin.get(`/contacts/persons/${gone}`)).status).toBe(404)
    expect(await names('/contacts/persons')).toEqual(['Ada', 'Bea', 'Cleo', 'Dora', 'Fay'])
  })
})

describe('changed records', () => {
  it('get the former values of the fields that are unchanged since', async () => {
    const make = given(server.admin)
    const ada = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }], job_title: 'Engineer' })
    const grace = await make.person({ name: 'Grace', emails: [{ value: 'grace@example.com' }] })
    const { id } = await using().run(
      'persons',
      people(
        ['Ada L.', 'ada@example.com', 'Countess', 'Royal Society', 'VIP'],
        ['Grace', 'grace@example.com|navy@example.com', 'Admiral', '', ''],
      ),
    )
    await server.admin.put(`/contacts/persons/${ada.id}`, { job_title: 'Analyst' })
    const { counts, rest } = await undone(id)
    expect(counts).toEqual({ deleted: 2, reverted: 2, restored: 0 })
    expect(rest).toMatchObject([{ entity_type: 'persons', entity_id: ada.id, field: 'job_title', reason: 'edited' }])
    expect(await get(`/contacts/persons/${ada.id}`)).toMatchObject({
      name: 'Ada',
      job_title: 'Analyst',
      organization: null,
      tags: [],
    })
    expect(await get(`/contacts/persons/${grace.id}`)).toMatchObject({
      job_title: null,
      emails: [{ value: 'grace@example.com' }],
    })
  })

  it('are leads with their stage, and products with their attributes', async () => {
    const make = given(server.admin)
    await server.admin.post('/settings/attributes', {
      entity_type: 'products',
      code: 'color',
      name: 'Color',
      type: 'text',
    })
    const lead = await make.lead({ title: 'Engines', lead_value: 100 })
    const won = await using().run(
      'leads',
      csvOf([
        ['id', 'title', 'lead_value', 'stage'],
        [lead.id, 'Looms', 250, 'Won'],
      ]),
    )
    expect(await get(`/leads/${lead.id}`)).toMatchObject({ title: 'Looms', status: 2 })
    expect((await undone(won.id)).rest).toEqual([])
    const { title, lead_value, status, stage } = await get(`/leads/${lead.id}`)
    expect({ title, lead_value, status, stage }).toEqual({
      title: 'Engines',
      lead_value: 100,
      status: 1,
      stage: lead.stage,
    })
    const sku = await make.product({ sku: 'P-1', price: 5 })
    const { id } = await using().run(
      'products',
      csvOf([
        ['sku', 'price', 'color'],
        ['P-1', 7, 'red'],
      ]),
    )
    expect((await undone(id)).counts.reverted).toBe(1)
    expect(await get(`/products/${sku.id}`)).toMatchObject({ price: 5, custom_attributes: { color: null } })
  })
})

describe('external ids', () => {
  const ids = async (id: number) => (await get(`/contacts/persons/${id}`)).external_ids
  const imported = (...rows: string[][]) => using().run('persons', csvOf([['name', 'external_ids'], ...rows]))

  it('come back one by one, except those that were changed since, and are freed by a deletion', async () => {
    const make = given(server.admin)
    const ada = await make.person({ name: 'Ada', external_ids: { hubspot: '1', sap: 'S1', old: 'o' } })
    const { id } = await imported(['Ada', 'hubspot:1|sap:S2|zoho:Z1'], ['Grace', 'hubspot:2'])
    expect(await ids(ada.id)).toEqual({ hubspot: '1', sap: 'S2', old: 'o', zoho: 'Z1' })
    expect((await get(`${path}/${id}`)).preview).toMatchObject({
      created: 1,
      updated: 1,
      conflicts: [{ field: 'external_ids.sap', count: 1 }],
    })
    await server.admin.put(`/contacts/persons/${ada.id}`, { external_ids: { zoho: 'Z2', hubspot: '11', old: null } })
    const { counts, rest } = await undone(id)
    expect(counts).toEqual({ deleted: 1, reverted: 1, restored: 0 })
    expect(rest).toMatchObject([{ entity_id: ada.id, field: 'external_ids.zoho', reason: 'edited' }])
    expect(await ids(ada.id)).toEqual({ hubspot: '11', sap: 'S1', zoho: 'Z2' })
    expect((await server.admin.put('/contacts/persons/external/hubspot/2', { name: 'Cleo' })).status).toBe(201)
  })

  it('that another record has by now stay with it', async () => {
    const ada = await given(server.admin).person({ name: 'Ada', external_ids: { sap: 'S1', hubspot: '1' } })
    const { id } = await imported(['Ada', 'hubspot:1|sap:S2'])
    const eve = await given(server.admin).person({ name: 'Eve', external_ids: { sap: 'S1' } })
    expect((await undone(id)).rest).toMatchObject([{ entity_id: ada.id, field: null, reason: 'refused' }])
    expect([await ids(ada.id), await ids(eve.id)]).toEqual([{ hubspot: '1', sap: 'S2' }, { sap: 'S1' }])
  })
})

describe('deleted records', () => {
  it('are restored', async () => {
    const person = await given(server.admin).person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    const { id } = await using().run('persons', csvOf([['emails'], ['ada@example.com']]), { action: 'delete' })
    expect(await names('/contacts/persons')).toEqual([])
    expect((await undone(id)).counts).toEqual({ deleted: 0, reverted: 0, restored: 1 })
    expect((await get(`/contacts/persons/${person.id}`)).name).toBe('Ada')
  })
})

describe('an undo', () => {
  const many = (count: number) =>
    csvOf([['sku', 'name', 'price'], ...Array.from({ length: count }, (_, n) => [`P-${n}`, `Product ${n}`, 5])])

  it('is tried by a dry run', async () => {
    const { id } = await using().run('products', many(60))
    const { status, body } = await undo(id, server.admin, { 'accord-dry-run': 'true' })
    expect(body.message).toBe('The undo was tried; nothing was changed.')
    expect([status, body.data.state, body.data.undo.deleted]).toEqual([200, 'undone', 60])
    expect(await get(`${path}/${id}`)).toMatchObject({ state: 'completed', undo: null })
    expect(await names('/products')).toHaveLength(60)
  })

  it('continues after the last page when it was interrupted, and deletes each record once', async () => {
    const { id } = await using().run('products', many(120))
    await undo(id)
    const products = server.app.services.resources.get('products') as unknown as {
      remove: (...args: unknown[]) => unknown
    }
    const { remove } = products
    let calls = 0
    products.remove = (...args) => {
      if (++calls === 70) throw new Error('killed')
      return remove(...args)
    }
    await server.work()
    products.remove = remove
    expect(await get(`${path}/${id}`)).toMatchObject({ state: 'undoing', undo: { deleted: 50, progress: 41 } })
    await server.store.db
      .updateTable('jobs')
      .set({ run_at: '2020-01-01T00:00:00.000Z' })
      .where('kind', '=', 'imports.undo')
      .execute()
    await server.work()
    expect(await get(`${path}/${id}`)).toMatchObject({ state: 'undone', undo: { deleted: 120, remaining: 0 } })
    const { body } = await server.admin.get(`/events?request_id=undo-${id}&name=product.delete.after&per_page=100`)
    expect(new Set(body.data.map(({ entity_id }: { entity_id: number }) => entity_id)).size).toBe(body.data.length)
  })

  it('needs the permissions of its caller, and shows others nothing', async () => {
    const { id } = await using().run('products', many(2))
    const limited = await addUser(server, 'Lim', {
      view: 'individual',
      permissions: [
        'settings',
        'settings.data_transfer',
        'settings.data_transfer.imports',
        'settings.data_transfer.imports.import',
      ],
    })
    expect((await undo(id, limited)).status).toBe(403)
    expect((await limited.get(`${path}/${id}/undo`)).status).toBe(404)
    const weak = await addUser(server, 'Weak', {
      view: 'global',
      permissions: [
        'settings',
        'settings.data_transfer',
        'settings.data_transfer.imports',
        'settings.data_transfer.imports.import',
        'products',
      ],
    })
    expect((await undo(id, weak)).status).toBe(202)
    await server.work()
    expect((await get(`${path}/${id}`)).undo).toMatchObject({ deleted: 0, remaining: 2 })
    expect(await get(`${path}/${id}/undo`, weak)).toMatchObject([{ reason: 'forbidden' }, { reason: 'forbidden' }])
  })

  it('does not count a workflow that the import started as an edit', async () => {
    await server.admin.post('/settings/workflows', {
      name: 'Title',
      entity_type: 'persons',
      event: 'contacts.person.create.after',
      condition_type: 'and',
      conditions: [],
      actions: [{ id: 'update_person', attribute: 'job_title', value: 'New' }],
    })
    const { id } = await using().run('persons', people(['Ada', 'ada@example.com', '', '', '']))
    await server.work()
    expect((await get(`/contacts/persons/${await idOf('Ada')}`)).job_title).toBe('New')
    expect((await undone(id)).counts.deleted).toBe(1)
  })
})
