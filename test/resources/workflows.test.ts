// Rules of workflow definitions that the generated contract tests do not check: every saved
// workflow can be evaluated and run.
import { describe, expect, it } from 'vitest'
import { deleteNamed } from '../support/deleted.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const path = '/settings/workflows'
const note = { id: 'add_note_as_activity', value: 'Called.' }

const server = useServer()

const base = { name: 'Big win', entity_type: 'leads', event: 'lead.update.after', actions: [note] }
const post = (changes: object = {}) => server.admin.post(path, { ...base, ...changes })
const fields = async (changes: object): Promise<string[]> => Object.keys((await post(changes)).body.errors ?? {})
const condition = (attribute: string, operator: string, value?: unknown) => ({ attribute, operator, value })

describe('listWorkflows', () => {
  it('shows the three that an installation starts with', async () => {
    const { body } = await server.admin.get(`${path}?sort=sort_order`)
    expect(body.data).toMatchObject([
      {
        entity_type: 'activities',
        event: 'activity.create.after',
        actions: [{ id: 'send_email_to_participants', value: 1 }],
      },
      {
        event: 'activity.update.after',
        conditions: [
          { attribute: 'type', operator: '{}', value: ['call', 'meeting', 'lunch'] },
          { attribute: 'notify', operator: '==', value: true },
          { attribute: 'schedule_to', operator: '>=', value: '{{today}}' },
          { attribute: 'is_rescheduled', operator: '==', value: true },
        ],
      },
      { event: 'activity.delete.before' },
    ])
    // A body from GET can be sent with PUT.
    for (const workflow of body.data) {
      const { status, body: kept } = await server.admin.put(`${path}/${workflow.id}`, workflow)
      expect([status, kept.data.version]).toEqual([200, 1])
    }
  })
})

describe('createWorkflow', () => {
  it('comes last unless told otherwise, without conditions, active, with one pair of events', async () => {
    const { status, body } = await post()
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      condition_type: 'and',
      conditions: [],
      actions: [{ ...note, attribute: null }],
      is_active: true,
      sort_order: 4,
    })
    expect(server.events()).toEqual(['settings.workflow.create.before', 'settings.workflow.create.after'])
  })

  it('takes every kind of condition', async () => {
    const conditions = [
      condition('lead_value', '>=', 5000),
      condition('lead_value', '<', '9999.9999'),
      condition('title', '!{}', 'test'),
      condition('status', '==', [1, 2]),
      condition('expected_close_date', '<=', '{{today+14}}'),
      condition('expected_close_date', '!=', null),
      condition('lead_source_id', '!=', 1),
      condition('user_id', '==', null),
      { ...condition('lead_pipeline_stage_id', '==', 5), attribute_type: 'lookup' },
    ]
    const { status, body } = await post({ conditions })
    expect(status).toBe(201)
    expect(body.data.conditions[8]).toEqual({ attribute: 'lead_pipeline_stage_id', operator: '==', value: 5 })
  })

  it('takes own attributes, and refuses options they do not have', async () => {
    const { body } = await server.admin.post('/settings/attributes', {
      code: 'sector',
      name: 'Sector',
      type: 'multiselect',
      entity_type: 'leads',
      options: [{ name: 'Retail' }, { name: 'Medical' }],
    })
    const [retail] = body.data.options
    expect(await fields({ conditions: [condition('sector', '{}', [retail.id])] })).toEqual([])
    expect(await fields({ name: 'b', conditions: [condition('sector', '{}', 99)] })).toEqual(['conditions.0.value'])
  })

  it.each([
    ['an attribute that is not there', condition('hue', '==', 1), 'attribute'],
    ['an attribute that cannot be compared', condition('description', '{}', 'x'), 'attribute'],
    ['an operator of another type', condition('title', '>=', 'a'), 'operator'],
    ['no value for an order', condition('lead_value', '>', null), 'value'],
    ['a text for a number', condition('lead_value', '==', 'many'), 'value'],
    ['a word for a date', condition('expected_close_date', '==', '{{tomorrow}}'), 'value'],
    ['a date that does not exist', condition('expected_close_date', '==', '2026-02-30'), 'value'],
    ['a status that is none', condition('status', '==', 4), 'value'],
    ['a source that does not exist', condition('lead_source_id', '==', [1, 99]), 'value'],
    ['an id that is none', condition('lead_source_id', '==', 'Web'), 'value'],
    ['an empty list', condition('tag_ids', '{}', []), 'value'],
    ['a tag that does not exist', condition('tag_ids', '{}', [9]), 'value'],
    ['a list for a text', condition('title', '==', ['a']), 'value'],
  ])('refuses a condition with %s', async (_what, wrong, field) => {
    expect(await fields({ conditions: [wrong] })).toEqual([`conditions.0.${field}`])
    expect(server.events()).toEqual([])
  })

  it('refuses an event of another entity', async () => {
    expect(await fields({ event: 'quote.create.after' })).toEqual(['event'])
  })

  it.each([
    ['of another entity', { id: 'send_email_to_participants', value: 1 }, 'id'],
    ['without the attribute to set', { id: 'update_lead', value: 1 }, 'attribute'],
    ['with an attribute that is not there', { id: 'update_lead', attribute: 'hue', value: 1 }, 'attribute'],
    ['with a value its attribute cannot have', { id: 'update_lead', attribute: 'lead_value', value: -1 }, 'value'],
    ['that empties what is required', { id: 'update_lead', attribute: 'title', value: null }, 'value'],
    ['that names a stage that is none', { id: 'update_lead', attribute: 'lead_pipeline_stage_id', value: 99 }, 'value'],
    ['with a template that does not exist', { id: 'send_email_to_person', value: 99 }, 'value'],
    ['with a webhook that does not exist', { id: 'trigger_webhook', value: 1 }, 'value'],
    ['with a tag without a name', { id: 'add_tag', value: ' ' }, 'value'],
    ['with an attribute it has no use for', { ...note, attribute: 'title' }, 'attribute'],
  ])('refuses an action %s', async (_what, wrong, field) => {
    expect(await fields({ actions: [wrong] })).toEqual([`actions.0.${field}`])
  })

  it('takes values of actions as the API takes them', async () => {
    const about = { entity_type: 'quotes', event: 'quote.create.after' }
    const set = (attribute: string, value: unknown) => [{ id: 'update_quote', attribute, value }]
    expect(await fields({ ...about, actions: set('discount_percent', 12.5) })).toEqual([])
    expect(await fields({ ...about, name: 'b', actions: set('discount_percent', '7') })).toEqual([])
    expect(await fields({ ...about, name: 'c', actions: set('discount_percent', 101) })).toEqual(['actions.0.value'])
    const street = { address: '1 Main St', city: 1, country: 'US', postcode: '1' }
    const wrong = { ...about, name: 'c', actions: set('billing_address', street) }
    expect(await fields(wrong)).toEqual(['actions.0.value.city'])
  })

  it('refuses a note or template with placeholders that mean nothing for its records', async () => {
    const errorsOf = async (actions: object[], more: object = {}) =>
      (await post({ actions, ...more })).body.errors?.['actions.0.value']
    const noted = (value: string) => [{ id: 'add_note_as_activity', value }]
    expect(await errorsOf(noted('Call {%persons.nam%}'))).toEqual([
      'Unknown placeholder {%persons.nam%}. Did you mean `persons.name`?',
    ])
    expect(await errorsOf(noted('{%quotes.subject%} {%unsubscribe_url%}'))).toHaveLength(2)
    expect(
      await errorsOf(noted('{%persons.name%} {%leads.title%} {%organizations.name%} {%users.name%}')),
    ).toBeUndefined()
    const { body } = await server.admin.post('/settings/email-templates', {
      name: 'Lead',
      subject: 'x',
      content: '{%leads.title%}',
    })
    const mailed = [{ id: 'send_email_to_person', value: body.data.id }]
    expect(await errorsOf(mailed, { name: 'Leads' })).toBeUndefined()
    expect(
      await errorsOf(mailed, { name: 'P', entity_type: 'persons', event: 'contacts.person.create.after' }),
    ).toEqual(['In the template, used for persons: Unknown placeholder {%leads.title%}.'])
  })

  it('takes one truth or several', async () => {
    const attribute = { code: 'vip', name: 'VIP', type: 'boolean', entity_type: 'leads' }
    await server.admin.post('/settings/attributes', attribute)
    expect(await fields({ conditions: [condition('vip', '==', [true, false])] })).toEqual([])
    expect(await fields({ name: 'b', conditions: [condition('vip', '==', [])] })).toEqual(['conditions.0.value'])
    expect(await fields({ name: 'b', conditions: [condition('vip', '==', ['yes'])] })).toEqual(['conditions.0.value'])
  })

  it('does not let totals of quotes be set', async () => {
    const about = { entity_type: 'quotes', event: 'quote.create.after' }
    const set = (attribute: string) => [{ id: 'update_quote', attribute, value: 1 }]
    expect(await fields({ ...about, actions: set('grand_total') })).toEqual(['actions.0.attribute'])
    expect(await fields({ ...about, actions: set('adjustment_amount') })).toEqual([])
  })
})

describe('updateWorkflow', () => {
  it('does not ask again about what was accepted, and does about what is new', async () => {
    const tag = await given(server.admin).tag()
    const { id } = (await post({ conditions: [condition('tag_ids', '{}', [tag.id])] })).body.data
    await deleteNamed(server, `/tags/${tag.id}`)
    const shown = (await server.admin.get(`${path}/${id}`)).body.data
    expect((await server.admin.put(`${path}/${id}`, { ...shown, name: 'Renamed' })).status).toBe(200)
    const more = [...shown.conditions, condition('tag_ids', '!{}', [tag.id])]
    const refused = await server.admin.put(`${path}/${id}`, { conditions: more })
    expect(Object.keys(refused.body.errors)).toEqual(['conditions.1.value'])
  })

  it('looks at everything anew for another entity', async () => {
    const { id } = (await post({ conditions: [condition('status', '==', 2)] })).body.data
    const { body } = await server.admin.put(`${path}/${id}`, { entity_type: 'persons' })
    expect(Object.keys(body.errors)).toEqual(['event', 'conditions.0.attribute'])
  })
})
