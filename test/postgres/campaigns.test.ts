// Two API processes and two workers on one PostgreSQL database send a campaign. One worker is
// killed midway, and the clock of the other worker is a minute ahead. Each address gets one row and
// each mail arrives once. At most the mail in progress is uncertain. ACCORD_TEST_FULL=1 uses 5,000
// recipients.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Store } from '../../db/store.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { accordServing, type Serving } from '../support/accord.ts'
import { seededImage, start } from '../support/app.ts'
import { openImage } from '../support/engine.ts'
import { useNewFolder } from '../support/folders.ts'
import { startSmtp } from '../support/smtp.ts'
import { useNew } from '../support/using.ts'

const recipients = process.env.ACCORD_TEST_FULL === '1' ? 5_000 : 200
const limitMs = 600_000
const shifted = new URL('../support/clock.shifted.mjs', import.meta.url).href

const folder = useNewFolder('cluster')
let store: Store
let running: Serving[] = []
const smtp = useNew(startSmtp)
beforeEach(async () => {
  store = await openImage(await seededImage())
})
afterEach(async () => {
  await Promise.all(running.map((each) => each.stop('SIGKILL')))
  running = []
  await store.close()
})

/** Starts a process with its own data folder, as on a separate machine. */
async function startProcess(name: string, command: 'serve' | 'worker', more = {}): Promise<Serving> {
  const own = join(folder, name)
  mkdirSync(own)
  const serving = await accordServing(own, command, {
    ACCORD_DATABASE_URL: store.url,
    ACCORD_SECRET: 'a secret that all processes of the cluster share',
    ACCORD_WORKER: 'off',
    ACCORD_SMTP_URL: smtp.url,
    ACCORD_CAMPAIGN_RATE: '1000000',
    ...more,
  })
  running.push(serving)
  return serving
}

/**
 * Inserts a campaign and its recipients directly into the tables. The audience is a tag, which one
 * person does not have.
 */
async function addCampaign(): Promise<number> {
  const stamps = { created_at: start, updated_at: start }
  const { id: tag } = await store.db
    .insertInto('tags')
    .values({ name: 'Guest', name_key: 'guest', color: '#0E90D9', ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  const outsider = { name: 'Outsider', name_key: 'outsider', contact_numbers: '[]', ...stamps }
  await store.db
    .insertInto('persons')
    .values({ ...outsider, emails: JSON.stringify([{ value: 'outsider@example.com', label: 'work' }]) })
    .execute()
  for (let from = 0; from < recipients; from += 500) {
    const persons = Array.from({ length: Math.min(500, recipients - from) }, (_, index) => ({
      name: `Person ${from + index}`,
      name_key: `person ${from + index}`,
      emails: JSON.stringify([{ value: `person${from + index}@example.com`, label: 'work' }]),
      contact_numbers: '[]',
      ...stamps,
    }))
    const made = await store.db.insertInto('persons').values(persons).returning('id').execute()
    await store.db
      .insertInto('person_tags')
      .values(made.map(({ id }) => ({ person_id: id, tag_id: tag })))
      .execute()
  }
  const template = await store.db
    .insertInto('email_templates')
    .values({ name: 'Spring', name_key: 'spring', subject: 'x', content: '<p>Dear {%persons.name%}</p>', ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  const named = { name: 'Spring', name_key: 'spring', subject: 'For {%persons.name%}', is_active: 1 }
  const audience = { audience_type: 'tag' as const, audience_tag_id: tag }
  const campaign = await store.db
    .insertInto('marketing_campaigns')
    .values({ ...named, ...audience, email_template_id: template.id, changed_by_id: 1, ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  return campaign.id
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > limit) throw new Error('It did not come to an end.')
    await pause(20)
  }
}

async function left(): Promise<number> {
  const rows = store.db.selectFrom('campaign_sends').select('id').where('state', '=', 'queued').limit(1)
  const jobs = store.db.selectFrom('jobs').select('id').where('kind', 'like', 'campaigns.%').limit(1)
  return (await rows.execute()).length + (await jobs.execute()).length
}

it('a campaign of two servers and two workers reaches each address once, though a worker is killed', async () => {
  const id = await addCampaign()
  const one = await startProcess('one', 'serve')
  const two = await startProcess('two', 'serve')
  const first = await startProcess('first', 'worker')
  await startProcess('second', 'worker', { NODE_OPTIONS: `--import ${shifted}`, ACCORD_TEST_CLOCK_AHEAD_MS: '61000' })
  const token = {
    userId: 1,
    name: 'test',
    kind: 'personal',
    abilities: ['*'],
    expiresAt: null,
    allowedIps: [],
  } as const
  const { text } = await issueToken(store.db, { ...token, abilities: ['*'], allowedIps: [] }, start)
  const call = (url: string, method: string, path: string): Promise<Response> =>
    fetch(`${url}/api/admin/settings/marketing/campaigns/${id}${path}`, {
      method,
      headers: { authorization: `Bearer ${text}`, accept: 'application/json' },
    })
  expect((await call(one.url, 'POST', '/run')).status).toBe(202)
  await until(() => smtp.received.length >= recipients / 3)
  await first.stop('SIGKILL')
  const before = smtp.received.length
  // Starts a worker as a supervisor would after the crash. It detects that the other process of its
  // machine has ended, so the interrupted job does not wait for the end of its lease.
  await startProcess('third', 'worker')
  await until(async () => (await left()) === 0)

  const rows = await store.db.selectFrom('campaign_sends').selectAll().execute()
  expect([rows.length, new Set(rows.map(({ address }) => address)).size]).toEqual([recipients, recipients])
  const uncertain = rows.filter(({ state }) => state === 'uncertain')
  expect(rows.filter(({ state }) => state === 'sent').length + uncertain.length).toBe(recipients)
  expect(uncertain.length).toBeLessThanOrEqual(1)
  const arrived = smtp.received.map(({ to }) => to.join())
  expect(new Set(arrived).size).toBe(arrived.length)
  expect(arrived.length + uncertain.length).toBeGreaterThanOrEqual(recipients)
  // The worker was killed midway, and the other worker sent the rest. The other server lists all
  // sends.
  expect(before).toBeLessThan(recipients)
  const listed = (await (await call(two.url, 'GET', '/sends?state=sent')).json()) as { meta: { total: number } }
  expect(listed.meta.total).toBe(recipients - uncertain.length)
}, 900_000)
