// The visibility of events: an event is visible to callers who would see its record in a list, in
// the feed, in histories and in the log of a webhook. A server without a rule for a type does not
// start. test/contract/matrix.events.ts checks every type.
import { describe, expect, it } from 'vitest'
import { systemContext } from '../../src/kernel/context.ts'
import { write } from '../../src/kernel/write/write.ts'
import { type Caller, contract, startServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { startSmtp } from '../support/smtp.ts'
import { useOne, useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Someone = Caller & { id: number }

let anna: Someone
let ben: Someone

const smtp = useOne(startSmtp)
const server = useServer(
  () => ({ config: { smtpUrl: smtp.url, campaignRate: 1000 } }),
  async (server) => {
    anna = await addUser(server, 'Anna', { view: 'individual' })
    ben = await addUser(server, 'Ben', { view: 'individual' })
  },
)

const feed = async (caller: Caller, query: string): Promise<any[]> => {
  const { status, body, text } = await caller.get(`/events?per_page=100&${query}`)
  expect(status === 200 ? '' : text).toBe('')
  return body.data
}

const made = async (path: string, body?: object): Promise<any> => {
  const { status, body: answer, text } = await server.admin.post(path, body)
  expect(status < 300 ? '' : text).toBe('')
  return answer.data
}

const webhook = (): Promise<{ id: number }> =>
  made('/settings/webhooks', {
    name: 'All',
    url: 'https://hooks.example.com/x',
    entity_type: null,
    method: 'post',
    payload_type: 'default',
    events: ['*'],
  })

const told = async (caller: Caller, id: number, type: string): Promise<(number | null)[]> => {
  const { status, body, text } = await caller.get(`/settings/webhooks/${id}/deliveries?per_page=100&sort=id`)
  expect(status === 200 ? '' : text).toBe('')
  const rows = body.data.filter((each: { entity_type: string }) => each.entity_type === type)
  return rows.map((each: { entity_id: number | null }) => each.entity_id)
}

/** Sends a campaign to a person of Anna and a person of Ben. Returns the id of the campaign. */
async function sentCampaign(): Promise<number> {
  const make = given(server.admin)
  await make.person({ name: 'Hers', emails: [{ value: 'hers@example.com' }], user_id: anna.id })
  await make.person({ name: 'His', emails: [{ value: 'his@example.com' }], user_id: ben.id })
  const template = await made('/settings/email-templates', { name: 'T', subject: 'S', content: '<p>Hello</p>' })
  const campaign = { name: 'C', subject: 'S', is_active: true, email_template_id: template.id }
  const { id } = await made('/settings/marketing/campaigns', campaign)
  await made(`/settings/marketing/campaigns/${id}/run`)
  await server.work()
  return id
}

const addressesIn = (rows: any[]): string[] => rows.map((each) => (each.after ?? each).address).sort()

describe('mails of campaigns', () => {
  it('are told to those who see them in the ledger', async () => {
    const id = await sentCampaign()
    for (const caller of [anna, ben, server.admin]) {
      const ledger = await caller.get(`/settings/marketing/campaigns/${id}/sends`)
      const entries = await feed(caller, 'entity_type=sends')
      expect(entries.length).toBeGreaterThan(0)
      expect(addressesIn(entries)).toEqual(addressesIn(ledger.body.data))
    }
    expect(JSON.stringify(await feed(anna, ''))).not.toContain('his@example.com')
  })

  it('hide their recipient after their campaign is deleted, except from callers who see all users', async () => {
    const id = await sentCampaign()
    expect((await server.admin.delete(`/settings/marketing/campaigns/${id}`)).status).toBe(200)
    expect(await feed(anna, 'entity_type=sends')).toEqual([])
    expect(addressesIn(await feed(server.admin, 'entity_type=sends'))).toEqual(['hers@example.com', 'his@example.com'])
  })

  it('are in the log of a webhook for those who see them in the ledger', async () => {
    const { id: hook } = await webhook()
    const id = await sentCampaign()
    const ledger = (await anna.get(`/settings/marketing/campaigns/${id}/sends`)).body.data
    expect(ledger).toHaveLength(1)
    expect(await told(anna, hook, 'sends')).toEqual([ledger[0].id])
    expect(await told(server.admin, hook, 'sends')).toHaveLength(2)
  })
})

describe('suppressions', () => {
  it('are visible only to callers who may list them', async () => {
    await made('/settings/marketing/suppressions', { address: 'no@example.com' })
    expect(addressesIn(await feed(anna, 'entity_type=suppressions'))).toEqual(['no@example.com'])
    const reader = await addUser(server, 'Reader', { permissions: ['events'] })
    expect(JSON.stringify(await feed(reader, ''))).not.toContain('no@example.com')
  })
})

describe('mails in folders that the caller may not open', () => {
  it('are not in the log of a webhook, neither while they are there nor when they are gone', async () => {
    const keys = ['settings.automation', 'settings.automation.webhooks', 'mail', 'mail.sent', 'events']
    const clerk = await addUser(server, 'Clerk', { permissions: keys })
    const { id: hook } = await webhook()
    const draft = { subject: 'Draft', html: 'x', to: ['a@example.com'], is_draft: true }
    const [kept, gone] = [await made('/emails', draft), await made('/emails', draft)]
    expect((await server.admin.delete(`/emails/${gone.id}?type=delete`)).status).toBe(200)
    await server.work()
    expect(new Set(await told(server.admin, hook, 'emails'))).toEqual(new Set([kept.id, gone.id]))
    expect(await told(clerk, hook, 'emails')).toEqual([])
    expect(await feed(clerk, 'entity_type=emails')).toEqual([])
  })
})

describe('a snapshot', () => {
  it('of a pipeline says nothing of leads that the reader does not see', async () => {
    const stages = [{ name: 'First', code: 'first', probability: 50 }]
    const pipeline = await made('/pipelines', { name: 'Own', rotten_days: 9, stages })
    const place = { lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: pipeline.stages[0].id }
    await made('/leads', { title: 'Of Ben', lead_value: 4711, user_id: ben.id, ...place })
    const [first, ...others] = pipeline.stages
    const change = { stages: [{ ...first, probability: 60 }, ...others] }
    expect((await server.admin.put(`/pipelines/${pipeline.id}`, change)).status).toBe(200)
    const history = (caller: Caller) => caller.get(`/pipelines/${pipeline.id}/history`)
    expect((await history(server.admin)).text).toContain('4711')
    for (const text of [(await history(anna)).text, JSON.stringify(await feed(anna, 'entity_type=pipelines'))]) {
      expect(text).toContain('"probability":60')
      expect(text).not.toMatch(/4711|4,711|"leads_count":|lead_value/)
    }
  })

  it('of a group names the members whom the reader sees', async () => {
    const group = await made('/settings/groups', { name: 'Both', user_ids: [anna.id, ben.id] })
    const [entry] = await feed(anna, `entity_type=groups&entity_id=${group.id}`)
    expect(entry.after.user_ids).toEqual([anna.id])
    const { body } = await anna.get(`/settings/groups/${group.id}/history`)
    expect(body.data[0].changes).toContainEqual(expect.objectContaining({ key: 'user_ids', new: [anna.id] }))
  })
})

describe('a type without a rule', () => {
  /** Returns the contract with changed event types. */
  const naming = (change: (types: string[]) => string[]): Record<string, unknown> => {
    const changed = structuredClone(contract) as { components: { schemas: { EventEntity: { enum: string[] } } } }
    const { EventEntity } = changed.components.schemas
    EventEntity.enum = change(EventEntity.enum)
    return changed
  }

  it('keeps the server from starting, which says which type that is', async () => {
    await expect(startServer({ contract: naming((types) => [...types, 'novelties']) })).rejects.toThrow(
      /^The server does not start: events may be about novelties, and no rule says who sees those\./,
    )
  })

  it('is not one that the contract does not know', async () => {
    await expect(
      startServer({ contract: naming((types) => types.filter((type) => type !== 'sends')) }),
    ).rejects.toThrow(
      /^The server does not start: there are rules for events about sends, which the schema EventEntity/,
    )
  })

  it('cannot be written about', async () => {
    const ctx = systemContext(server.app.services, 'api')
    const work = async () => ({ id: 1, entity: { id: 1 } })
    await expect(write(ctx, 'settings.tag.create', { entity: 'novelties', input: {} }, work)).rejects.toThrow(
      'No rule says who sees events about novelties.',
    )
  })
})
