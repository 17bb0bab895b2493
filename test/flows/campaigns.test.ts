// A campaign whose server and worker are killed (`kill -9`) at random moments, with a real SMTP
// server: every address has exactly one row, no mail arrives twice, and each kill leaves at most
// one uncertain mail. ACCORD_TEST_FULL=1 uses 5,000 recipients and 16 kills.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { processCampaignsCommand } from '../../src/commands/mail.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { seededImage, start, testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { type SmtpServer, startSmtp } from '../support/smtp.ts'

const full = process.env.ACCORD_TEST_FULL === '1'
/** The number of concurrent mails over all workers. */
const slots = 1

const folder = useNewFolder('campaigns')
let smtp: SmtpServer
let store: Store
let serving: Serving | undefined

beforeEach(async () => {
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data', 'accord.db'), await seededImage())
  smtp = await startSmtp()
  store = openStore(`sqlite:${join(folder, 'data', 'accord.db')}`)
})
afterEach(async () => {
  await serving?.stop('SIGKILL')
  serving = undefined
  await store.close()
  await smtp.close()
})

const environment = () => ({ ACCORD_SMTP_URL: smtp.url, ACCORD_CAMPAIGN_RATE: '1000000' })
const below = (most: number): number => Math.floor(Math.random() * most)

/** Inserts persons directly into the table. Only members are in the audience. */
async function addPersons(count: number, jobTitle: 'Member' | 'Outsider' = 'Member'): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const persons = Array.from({ length: Math.min(500, count - from) }, (_, index) => ({
      name: `Person ${from + index}`,
      name_key: `person ${from + index}`,
      job_title: jobTitle,
      job_title_key: jobTitle.toLowerCase(),
      emails: JSON.stringify([{ value: `${jobTitle}${from + index}@example.com`, label: 'work' }]),
      contact_numbers: '[]',
      created_at: start,
      updated_at: start,
    }))
    await store.db.insertInto('persons').values(persons).execute()
  }
}

async function addCampaign(): Promise<number> {
  const stamps = { created_at: start, updated_at: start }
  const content = '<p>Dear {%persons.name%}</p><p><a href="{%unsubscribe_url%}">No more</a></p>'
  const template = await store.db
    .insertInto('email_templates')
    .values({ name: 'Spring', name_key: 'spring', subject: 'x', content, ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  const named = { name: 'Spring', name_key: 'spring', subject: 'For {%persons.name%}', is_active: 1 }
  const audience = { audience_type: 'filter' as const, audience_filter: JSON.stringify({ job_title: ['Member'] }) }
  const campaign = await store.db
    .insertInto('marketing_campaigns')
    .values({ ...named, ...audience, email_template_id: template.id, changed_by_id: 1, ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  return campaign.id
}

/** Starts the campaign and returns the status. */
async function run(url: string, id: number): Promise<number> {
  return (await call(url, 'POST', `/${id}/run`)).status
}

async function call(url: string, method: 'GET' | 'POST', path: string): Promise<Response> {
  const wanted = {
    userId: 1,
    name: 'test',
    kind: 'personal',
    abilities: ['*'],
    expiresAt: null,
    allowedIps: [],
  } as const
  const { text } = await issueToken(store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)
  return fetch(`${url}/api/admin/settings/marketing/campaigns${path}`, {
    method,
    headers: { authorization: `Bearer ${text}`, accept: 'application/json' },
  })
}

async function left(): Promise<number> {
  const { count } = await store.db
    .selectFrom('campaign_sends')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', '=', 'queued')
    .executeTakeFirstOrThrow()
  const { jobs } = await store.db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('jobs'))
    .where('kind', 'like', 'campaigns.%')
    .executeTakeFirstOrThrow()
  return Number(count) + Number(jobs)
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 600_000
  while (!(await isSo())) {
    if (performance.now() > limit) throw new Error('It did not come to an end.')
    await pause(5)
  }
}

async function survive(recipients: number, kills: number, most: number): Promise<void> {
  const since = performance.now()
  await addPersons(recipients)
  await addPersons(20, 'Outsider')
  const id = await addCampaign()
  const killedIn: string[] = []
  for (let life = 0; life < kills; life++) {
    const command = life % 2 === 0 ? 'serve' : 'worker'
    serving = await accordServing(folder, command, environment())
    if (life === 0) {
      expect(await run(serving.url, id)).toBe(202)
      // Kills while the recipients are being inserted.
      await pause(below(300))
    } else {
      const [had, wanted] = [smtp.received.length, 1 + below(most)]
      await until(async () => smtp.received.length >= had + wanted || (await left()) === 0)
      await pause(below(10))
    }
    killedIn.push(`${command} at ${smtp.received.length}`)
    await serving.stop('SIGKILL')
  }
  serving = await accordServing(folder, 'serve', environment())
  await until(async () => (await left()) === 0)
  const { code } = await serving.stop()
  serving = undefined

  const rows = await store.db.selectFrom('campaign_sends').selectAll().execute()
  const addresses = new Set(rows.map(({ address }) => address))
  expect([rows.length, addresses.size]).toEqual([recipients, recipients])
  const uncertain = rows.filter(({ state }) => state === 'uncertain')
  const sent = rows.filter(({ state }) => state === 'sent')
  expect(sent.length + uncertain.length).toBe(recipients)
  expect(sent.filter(({ sent_at }) => !sent_at)).toEqual([])
  const nameOf = ({ message_id, address }: (typeof rows)[number]) => `${message_id} ${address}`
  const ids = smtp.received.map(({ raw, to }) => `${/^Message-ID: *<([^>]+)>/im.exec(raw)?.[1]} ${to.join()}`)
  const arrived = new Set(ids)
  expect(sent.map(nameOf).filter((each) => !arrived.has(each))).toEqual([])
  const known = new Set(rows.map(nameOf))
  expect(ids.filter((each) => !known.has(each))).toEqual([])
  const duplicates = ids.length - arrived.size
  const seconds = Math.round((performance.now() - since) / 100) / 10
  console.log(
    `${recipients} recipients, ${kills} kills (${killedIn.join(', ')}): ${duplicates} mails seen twice, ${uncertain.length} uncertain, ${seconds} s.`,
  )
  expect(duplicates).toBe(0)
  expect(uncertain.length).toBeLessThanOrEqual(kills * slots)
  const events = await store.db
    .selectFrom('events')
    .select(({ fn }) => ['name', fn.countAll<number>().as('count')])
    .where('name', 'like', 'marketing.%')
    .groupBy('name')
    .orderBy('name')
    .execute()
  expect(events).toEqual([
    { name: 'marketing.campaign.run.after', count: 1 },
    { name: 'marketing.send.create.after', count: recipients },
  ])
  expect(code).toBe(0)
}

describe('a campaign', () => {
  it('is not queued for a day that there is not', () => {
    expect(() => processCampaignsCommand(testConfig(), { date: '2026-02-30' })).toThrow('--date must be a day')
  })

  it('comes through kill -9 at random moments with one row for every address', async () => {
    await (full ? survive(5000, 16, 450) : survive(200, 2, 90))
  }, 900_000)

  it('has a mail that SMTP took when the server was killed once, as uncertain, until a user sends it again', async () => {
    await addPersons(3)
    const id = await addCampaign()
    smtp.behave('take-silently')
    serving = await accordServing(folder, 'serve', environment())
    expect(await run(serving.url, id)).toBe(202)
    await until(() => smtp.received.length === 1)
    await serving.stop('SIGKILL')
    smtp.behave('accept')
    serving = await accordServing(folder, 'serve', environment())
    await until(async () => (await left()) === 0)
    expect(new Set(smtp.received.map(({ to }) => to.join())).size).toBe(3)
    expect(smtp.received).toHaveLength(3)
    const listed = await call(serving.url, 'GET', `/${id}/sends?state=uncertain`)
    const { data } = (await listed.json()) as { data: { id: number; address: string }[] }
    expect(data.map(({ address }) => address)).toEqual([smtp.received[0]?.to.join()])
    expect((await call(serving.url, 'POST', `/${id}/sends/${data[0]?.id}/resend`)).status).toBe(202)
    await until(async () => (await left()) === 0)
    const ids = smtp.received.map(({ raw }) => /^Message-ID: *<([^>]+)>/im.exec(raw)?.[1])
    expect([ids.length, ids[3]]).toEqual([4, ids[0]])
    expect(await store.db.selectFrom('campaign_sends').select('state').where('state', '<>', 'sent').execute()).toEqual(
      [],
    )
  }, 120_000)

  it('is queued by accord campaign:process, once, and sent by the server', async () => {
    await addPersons(3)
    // This name makes the subject longer than its limit.
    await store.db
      .updateTable('persons')
      .set({ name: 'L'.repeat(1000) })
      .where('name', '=', 'Person 2')
      .execute()
    await addCampaign()
    const first = await accord(folder, ['campaign:process', '--date', '2026-03-01'], environment())
    expect([first.stdout, first.stderr]).toEqual(['2026-03-01: 1 campaign, 3 e-mails queued, 0 suppressed.\n', ''])
    serving = await accordServing(folder, 'serve', environment())
    await until(() => smtp.received.length === 2)
    const second = await accord(folder, ['campaign:process'], environment())
    expect(second.stdout).toMatch(/^\d{4}-\d\d-\d\d: 1 campaign, 0 e-mails queued, 0 suppressed\.\n$/)
    expect(smtp.received).toHaveLength(2)
  })
})
