// With ACCORD_STRICT off, unknown conditions are refused all the same, because without them more
// records match.
import { describe, expect, it } from 'vitest'
import { useServer } from '../support/using.ts'

const server = useServer(() => ({ config: { strict: false } }))

describe('without strict validation', () => {
  it.each<[string, object, string]>([
    ['a field', { lead_valu: 1 }, 'where.lead_valu'],
    ['a field in a group', { or: [{ stauts: 1 }] }, 'where.or.0.stauts'],
    ['a negated field', { not: [{ stauts: 1 }] }, 'where.not.0.stauts'],
    ['a field of a related record', { organization: { nam: 'x' } }, 'where.organization.nam'],
    ['an operator', { lead_value: { gtee: 3 } }, 'where.lead_value.gtee'],
    ['a custom attribute', { custom_attributes: { nothing: 1 } }, 'where.custom_attributes.nothing'],
  ])('an unknown condition is refused: %s', async (_what, where, field) => {
    const query = await server.admin.post('/leads/query', { where })
    expect([query.status, Object.keys(query.body.errors ?? {})]).toEqual([422, [field]])
    const view = await server.admin.post('/views', { name: 'A view', type: 'leads', where })
    expect([view.status, Object.keys(view.body.errors ?? {})]).toEqual([422, [field]])
  })

  it('an unknown filter of an audience or a report is refused', async () => {
    const audience = { type: 'filter', filter: { q: 'Ada', 'emial[not]': 'ada@example.com' } }
    const campaign = { name: 'Spring', subject: 'Hello', email_template_id: 1, audience }
    const sized = await server.admin.post('/settings/marketing/campaigns', campaign)
    expect([sized.status, Object.keys(sized.body.errors ?? {})]).toEqual([422, ['audience.filter.emial[not]']])
    const asked = { measure: 'leads_count', group_by: 'user', period: 'this_year', filter: { user: 1 } }
    const report = await server.admin.post('/reports/query', asked)
    expect([report.status, Object.keys(report.body.errors ?? {})]).toEqual([422, ['filter.user']])
  })

  it('an unknown key beside the conditions is ignored', async () => {
    expect((await server.admin.post('/leads/query', { where: { status: 1 }, more: true })).status).toBe(200)
    expect((await server.admin.post('/tags', { name: 'New', more: true })).status).toBe(201)
  })
})
