// The cost of the size of an audience: one query finds its persons, and a larger audience than the
// contract counts is counted in part.
import { describe, expect, it } from 'vitest'
import { start } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'

const campaigns = '/settings/marketing/campaigns'
const server = useServer()

/** Stores persons with an address each, without the work of a request. */
async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const rows = Array.from({ length: Math.min(500, count - from) }, (_, index) => ({
      name: `Person ${from + index}`,
      name_key: `person ${from + index}`,
      emails: JSON.stringify([{ value: `person${from + index}@example.com`, label: 'work' }]),
      created_at: start,
      updated_at: start,
    }))
    await server.store.db.insertInto('persons').values(rows).execute()
  }
}

async function campaign(audience: object): Promise<number> {
  const mail = { name: 'Spring', subject: 'Hello', content: 'News' }
  const template = await server.admin.post('/settings/email-templates', mail)
  const email_template_id = template.body.data.id
  const sent = { name: 'Spring', subject: 'Hello', email_template_id, audience }
  const { body, text } = await server.admin.post(campaigns, sent)
  expect(body.data, text).toBeDefined()
  return body.data.id
}

describe('the size of an audience', () => {
  it('covers the first 10,000 persons of a larger one, in the audience and in the preview', async () => {
    await fill(10_000)
    await server.admin.post('/settings/marketing/suppressions', { address: 'person9999@example.com' })
    const id = await campaign({ type: 'all' })
    const whole = (await server.admin.get(`${campaigns}/${id}/audience`)).body.data
    expect(whole).toMatchObject({ is_complete: true, matched: 10_000, suppressed: 1, reachable: 9_999 })
    await fill(1)
    const part = (await server.admin.get(`${campaigns}/${id}/audience`)).body.data
    expect(part).toEqual({ ...whole, is_complete: false })
    const preview = (await server.admin.get(`${campaigns}/${id}/preview`)).body.data
    expect(preview).toMatchObject({ is_complete: false, recipients: 9_999, suppressed: 1 })
  })

  it.runIf(!isPostgres)('searches once, and not again before the next commit', async () => {
    for (const name of ['Ada Person', 'Grace Person', 'Joan'])
      await server.admin.post('/contacts/persons', { name, emails: [{ value: `${name.at(0)}@example.com` }] })
    const id = await campaign({ type: 'filter', filter: { q: 'person' } })
    const ask = () =>
      statementsOf(async () => {
        const { data } = (await server.admin.get(`${campaigns}/${id}/audience`)).body
        expect(data).toMatchObject({ is_complete: true, matched: 2, reachable: 2 })
      })
    const finding = (statements: string[]) => statements.filter((text) => /from "persons".* limit /.test(text))
    expect(finding(await ask())).toHaveLength(1)
    expect(finding(await ask())).toEqual([])
    await server.admin.post('/tags', { name: 'New' })
    expect(finding(await ask())).toHaveLength(1)
  })
})
