// Rules of marketing events and campaigns that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const events = '/settings/marketing/events'
const campaigns = '/settings/marketing/campaigns'

const server = useNewServers()

const event = async (changes: object = {}) =>
  (await server.admin.post(events, { name: 'Trade fair', description: 'Hall 4.', date: '2026-04-01', ...changes })).body
    .data
const campaign = async (changes: object = {}) =>
  (await server.admin.post(campaigns, { name: 'Invitation', subject: 'Meet us', email_template_id: 1, ...changes }))
    .body.data

describe('createMarketingEvent', () => {
  it('refuses a date in the past, and keeps an old one that an update sends back', async () => {
    const refused = await server.admin.post(events, { name: 'Fair', description: 'x', date: '2026-02-28' })
    expect(refused.status).toBe(422)
    expect(refused.body.errors).toEqual({ date: ['Must be today or later.'] })
    const { id } = await event()
    server.clock.set('2026-05-01T09:00:00.000Z')
    server.events()
    const kept = await server.admin.put(`${events}/${id}`, { name: 'Fair', date: '2026-04-01' })
    expect(kept.status).toBe(200)
    expect(kept.body.data).toMatchObject({ name: 'Fair', date: '2026-04-01', version: 2 })
    expect(server.events()).toEqual([
      'settings.marketing.events.update.before',
      'settings.marketing.events.update.after',
    ])
    expect((await server.admin.put(`${events}/${id}`, { date: '2026-04-02' })).status).toBe(422)
  })

  it('refuses the name of another, in whatever case', async () => {
    const { id } = await event()
    const other = await event({ name: 'Party' })
    const taken = { code: 'unique_violation', conflicts: [{ entity_type: 'events', id, field: 'name' }] }
    const twice = await server.admin.post(events, { name: 'TRADE fair', description: 'x' })
    expect([twice.status, twice.body]).toEqual([409, expect.objectContaining(taken)])
    const renamed = await server.admin.put(`${events}/${other.id}`, { name: 'trade fair' })
    expect([renamed.status, renamed.body]).toEqual([409, expect.objectContaining(taken)])
    expect((await server.admin.put(`${events}/${id}`, { name: 'TRADE FAIR' })).body.data.name).toBe('TRADE FAIR')
  })
})

describe('listMarketingEvents', () => {
  it('filters by date and range, and tells events without a date', async () => {
    await event()
    await event({ name: 'Summer party', date: '2026-07-01' })
    await event({ name: 'Some day', date: null })
    const names = async (query: Record<string, string>) =>
      (await server.admin.get(events, { query: { ...query, sort: 'name' } })).body.data.map(
        ({ name }: { name: string }) => name,
      )
    expect(await names({ date: '2026-04-01' })).toEqual(['Trade fair'])
    expect(await names({ 'date[gte]': '2026-04-02' })).toEqual(['Summer party'])
    expect(await names({ 'date[null]': 'true' })).toEqual(['Some day'])
    expect(await names({ q: 'hall fair' })).toEqual(['Trade fair'])
  })
})

describe('deleteMarketingEvent', () => {
  it('refuses while campaigns go out on it, names them and deletes nothing', async () => {
    const { id } = await event()
    const used = await campaign({ marketing_event_id: id })
    server.events()
    const { status, body } = await server.admin.delete(`${events}/${id}`)
    expect(status).toBe(409)
    expect(body).toMatchObject({
      code: 'in_use',
      conflicts: [{ entity_type: 'campaigns', id: used.id, field: 'marketing_event_id' }],
    })
    expect(server.events()).toEqual(['settings.marketing.events.delete.before'])
    await server.admin.delete(`${campaigns}/${used.id}`)
    expect((await server.admin.post(`${events}/mass-delete`, { ids: [id, 99] })).body.data).toEqual({
      processed: [id],
      failed: [expect.objectContaining({ id: 99, status: 404 })],
    })
  })
})

describe('createCampaign', () => {
  it('shows template and event, in full when asked', async () => {
    const { id } = await event()
    const created = await campaign({ marketing_event_id: id })
    expect(created).toMatchObject({
      is_active: false,
      email_template: { id: 1, name: 'Activity created' },
      marketing_event: { id, name: 'Trade fair', date: '2026-04-01' },
    })
    const { body } = await server.admin.get(`${campaigns}/${created.id}?include=marketing_event,email_template`)
    expect(body.data.marketing_event).toMatchObject({ description: 'Hall 4.', version: 1 })
    expect(body.data.email_template).toMatchObject({ subject: expect.any(String), content: expect.any(String) })
  })

  it('refuses a template or an event that does not exist, both at once', async () => {
    const { status, body } = await server.admin.post(campaigns, {
      name: 'x',
      subject: 'y',
      email_template_id: 99,
      marketing_event_id: 99,
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual(['email_template_id', 'marketing_event_id'])
    expect(server.events()).toEqual([])
  })
})

describe('deleteEmailTemplate', () => {
  it('refuses while an active campaign uses it, and lets inactive ones go on without it', async () => {
    const template = (
      await server.admin.post('/settings/email-templates', { name: 'Spring', subject: 's', content: '<p>c</p>' })
    ).body.data
    const { id } = await campaign({ email_template_id: template.id, is_active: true })
    const path = `/settings/email-templates/${template.id}`
    expect((await server.admin.delete(path)).body).toMatchObject({
      code: 'in_use',
      conflicts: [{ entity_type: 'campaigns', id }],
    })
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    server.events()
    expect((await server.admin.delete(path)).status).toBe(200)
    expect(server.events()).toEqual([
      'settings.email_templates.delete.before',
      'settings.marketing.campaigns.update.before',
      'settings.marketing.campaigns.update.after',
      'settings.email_templates.delete.after',
    ])
    const left = (await server.admin.get(`${campaigns}/${id}`)).body.data
    expect(left).toMatchObject({ email_template_id: null, email_template: null, version: 3 })
    expect((await server.admin.put(`${campaigns}/${id}`, { is_active: true })).status).toBe(422)
    const same = await server.admin.put(`${campaigns}/${id}`, left)
    expect([same.status, same.body.data]).toEqual([200, left])
    expect((await server.admin.put(`${campaigns}/${id}`, { ...left, is_active: true })).status).toBe(422)
    const renewed = await server.admin.put(`${campaigns}/${id}`, { email_template_id: 1, subject: 'Meet\nus' })
    expect(renewed.body.data).toMatchObject({ email_template_id: 1, subject: 'Meet us' })
    const none = await server.admin.put(`${campaigns}/${id}`, { email_template_id: null })
    expect(none.body.errors).toEqual({ email_template_id: ['The field is required.'] })
  })

  it('refuses while a workflow sends it', async () => {
    const { status, body } = await server.admin.delete('/settings/email-templates/1')
    expect(status).toBe(409)
    expect(body.conflicts).toEqual([{ entity_type: 'workflows', id: 1, field: 'actions' }])
  })
})
