// Every operation behind a token, called without a good one: 401 in the form the caller asked for, and nothing else happens.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth.ts'
import { start } from '../support/app.ts'
import { facts } from '../support/schema.ts'
import { changesNothing, request, send, startWorld, type World } from './support.ts'

const guarded = facts.filter(([, each]) => !each.public).map(([id]) => id)
const tokens: Record<string, string | null> = {}
let world: World

beforeAll(async () => {
  world = await startWorld()
  const { db } = world.server.store
  const issue = (expiresAt: string | null) =>
    issueToken(db, { userId: 1, name: 'walker', kind: 'personal', abilities: ['*'], expiresAt, allowedIps: [] }, start)
  const good = await issue(null)
  const revoked = await issue(null)
  await db.deleteFrom('tokens').where('id', '=', revoked.id).execute()
  const secret = good.text.split('|')[1] ?? ''
  Object.assign(tokens, {
    none: null,
    garbage: 'let-me-in',
    'an id nobody has': `999999|${secret}`,
    'a wrong secret': `${good.id}|${[...secret].reverse().join('')}`,
    revoked: revoked.text,
    expired: (await issue(start)).text,
  })
  world.server.keep()
})
afterAll(() => world.server.close())

describe.each(guarded)('%s', (id) => {
  it('answers 401 with a problem to every token that is not good, and does nothing', async () => {
    const findings = await changesNothing(world, async () => {
      for (const [name, token] of Object.entries(tokens)) {
        const { status, headers, body } = await send(world, id, { ...request(world, id), token })
        expect
          .soft([name, status, headers['www-authenticate'], body?.code])
          .toEqual([name, 401, 'Bearer', 'unauthenticated'])
        expect.soft(headers['content-type']).toMatch(/^application\/problem\+json/)
      }
    })
    expect(findings).toEqual([])
  })

  it('answers 401 with the login page to a caller who does not ask for JSON', async () => {
    const findings = await changesNothing(world, async () => {
      for (const accept of ['text/html', '*/*', '']) {
        const { status, headers, text } = await send(world, id, {
          ...request(world, id),
          token: null,
          headers: { accept },
        })
        expect.soft([status, headers['www-authenticate']]).toEqual([401, 'Bearer'])
        expect.soft(headers['content-type']).toMatch(/^text\/html/)
        expect.soft(text).toContain('<form')
      }
    })
    expect(findings).toEqual([])
  })
})

describe('a bearer token', () => {
  it('is never read from the query string', async () => {
    const { status } = await send(world, 'listSources', {
      method: 'GET',
      url: `/api/admin/sources?token=${world.server.admin.token}`,
      token: null,
    })
    expect(status).toBe(401)
  })
})
