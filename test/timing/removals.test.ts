// How long other requests wait while a user, a stage and a tag with many leads are removed.
// test/jobs/removals.test.ts tests the steps.
import { beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { newName } from '../support/names.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { measure } from './measure.ts'

const leads = 20_000
/**
 * The longest accepted wait of another request, as a part of the time of the removal. A removal in
 * one transaction makes others wait for all of it.
 */
const longestPart = 0.2

let token: string
const server = useOne(listeningServer)
beforeAll(async () => {
  const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
  token = (await issueToken(server.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text
})

async function call(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' }
  const reply = await fetch(`${server.url}/api/admin${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: reply.status, body: (await reply.json()) as any }
}

/** Inserts leads directly, because the API would take long. */
async function insertLeads(like: number): Promise<number[]> {
  const { db } = server.store
  const { id: _id, ...row } = await db.selectFrom('leads').selectAll().where('id', '=', like).executeTakeFirstOrThrow()
  const ids: number[] = []
  for (let made = 0; made < leads; made += 500) {
    const rows = Array.from({ length: 500 }, () => row)
    ids.push(...(await db.insertInto('leads').values(rows).returning('id').execute()).map(({ id }) => id))
  }
  return ids
}

async function addUser(name: string): Promise<number> {
  const role_id = 1
  const password = 'a long enough sentence'
  const user = {
    name,
    email: `${name}@example.com`,
    password,
    password_confirmation: password,
    role_id,
    is_active: true,
  }
  const { status, body } = await call('POST', '/settings/users', { ...user, view_permission: 'global' })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data.id
}

/**
 * Starts a removal, and measures other requests until it has ended. Returns their longest time as a
 * part of the time of the removal.
 */
async function longestPartOf(method: string, path: string, body?: object): Promise<number> {
  const began = performance.now()
  const started = await call(method, path, body)
  expect(started.status, JSON.stringify(started.body)).toBe(202)
  const answeredMs = performance.now() - began
  const isOver = async (): Promise<boolean> => (await call('GET', `/jobs/${started.body.data.id}`)).status === 404
  let longest = answeredMs
  let endedMs = 0
  const ended = until(isOver, 240_000).then(() => {
    endedMs = performance.now() - began
  })
  while (endedMs === 0) {
    const { answered, failed, refused } = await measure({
      url: server.url,
      token,
      seconds: 4,
      aSecond: 40,
      writes: 25,
      warmsUp: true,
    })
    expect([failed, refused.count]).toEqual([0, 0])
    longest = Math.max(longest, answered.max)
  }
  await ended
  console.info(`${path}: removed in ${Math.round(endedMs)} ms, longest other request ${Math.round(longest)} ms`)
  return longest / endedMs
}

describe('other requests while many leads change', () => {
  it('wait briefly for the removal of a user, a stage and a tag', { timeout: 600_000 }, async () => {
    const [ann, bob] = [await addUser(newName('ann')), await addUser(newName('bob'))]
    const [pipeline] = (await call('GET', '/pipelines')).body.data
    const from = pipeline.stages.find(({ code }: { code: string }) => code === 'prospect')
    const lead = { title: 'One of many', lead_value: 10, user_id: ann, lead_pipeline_stage_id: from.id }
    const made = await call('POST', '/leads', lead)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const ids = await insertLeads(made.body.data.id)
    const { body: tag } = await call('POST', '/tags', { name: newName('many') })
    for (let done = 0; done < ids.length; done += 500)
      await server.store.db
        .insertInto('lead_tags')
        .values(ids.slice(done, done + 500).map((lead_id) => ({ lead_id, tag_id: tag.data.id })))
        .execute()
    const stages = pipeline.stages.filter(({ id }: { id: number }) => id !== from.id)
    const sent = { stages: stages.map(({ id }: { id: number }) => ({ id })) }
    expect(await longestPartOf('DELETE', `/settings/users/${ann}?reassign_to=${bob}`)).toBeLessThan(longestPart)
    expect(await longestPartOf('PUT', `/pipelines/${pipeline.id}`, sent)).toBeLessThan(longestPart)
    expect(await longestPartOf('DELETE', `/tags/${tag.data.id}`)).toBeLessThan(longestPart)
  })
})
