// Sessions as credentials: operations are called from an own page, from another site,
// without the CSRF value, and with an ended session.
import { createHash } from 'node:crypto'
import { beforeAll, describe, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { facts, takesHeader } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { type Cells, isFull, keep, untouched } from './matrix.ts'
import { request, send, type World } from './support.ts'

const guarded = facts.filter(([, each]) => !each.public)
const ours = 'http://localhost'
/**
 * The short run tests refusals only with these operations, because all operations share the
 * authentication.
 */
const some = new Set([
  'getAccount',
  'updateAccount',
  'listLeads',
  'createLead',
  'updateLead',
  'deleteLead',
  'uploadFile',
  'logout',
])

interface Session {
  cookie: string
  csrf: string
}

export function sessionCells(of: () => World, cells: Cells): void {
  let good: Session
  let keyless: Session
  let inactive: Session
  const over: Record<string, Session> = {}

  beforeAll(async () => {
    const world = of()
    await world.server.rewind()
    good = await signIn(world, 'admin@example.com')
    const { id: keylessId } = await addUser(world.server, 'Keyless', { permissions: [] })
    const { id: gone } = await addUser(world.server, 'Gone', { isActive: false })
    const change = async (changes: object): Promise<Session> => {
      const session = await signIn(world, 'admin@example.com')
      const [, secret = ''] = /accord_session=([^;]+)/.exec(session.cookie) ?? []
      const hash = createHash('sha256').update(secret).digest('hex')
      await world.server.store.db.updateTable('sessions').set(changes).where('secret_hash', '=', hash).execute()
      return session
    }
    keyless = await change({ user_id: keylessId })
    inactive = await change({ user_id: gone })
    over['idle for 8 hours'] = await change({ last_used_at: '2026-03-01T01:30:00.000Z' })
    over['older than it may be'] = await change({ expires_at: '2026-03-01T09:30:00.000Z' })
    over.ended = await signIn(world, 'admin@example.com')
    const headers = { cookie: over.ended.cookie, 'x-xsrf-token': over.ended.csrf, origin: ours }
    const { status } = await world.server.anonymous.delete('/session', { headers })
    cells.check('deleteSession', status, 200)
    over.unknown = { cookie: `accord_session=${'x'.repeat(43)}`, csrf: good.csrf }
    await keep(world)
  })

  describe.each(guarded)('%s', (id, { method, permission }) => {
    const ask = async (name: string, { cookie, csrf }: Session, more: Record<string, string>, wanted: unknown) => {
      const headers = { cookie, 'x-xsrf-token': csrf, origin: ours, ...more }
      const { status, body } = await send(of(), id, { ...request(of(), id), token: null, headers })
      cells.check(`${id}, a session ${name}`, [status, body?.code], wanted)
    }

    it('refuses a session that is over, not sent by a page of ours, or without the value that shows it is', async () => {
      await untouched(cells, id, of(), async () => {
        await ask('that is ended', over.ended ?? good, {}, [401, 'unauthenticated'])
        await ask('from elsewhere', good, { origin: 'https://evil.example' }, [401, 'unauthenticated'])
        if (method !== 'get')
          await ask('with the value of another', good, { 'x-xsrf-token': keyless.csrf }, [403, 'csrf_mismatch'])
        if (!isFull && !some.has(id)) return
        for (const [name, session] of Object.entries(over)) await ask(name, session, {}, [401, 'unauthenticated'])
        await ask('of an inactive user', inactive, {}, [401, 'account_inactive'])
        for (const origin of ['null', 'http://localhost.evil.example', 'http://localhost:1'])
          await ask(`from ${origin}`, good, { origin }, [401, 'unauthenticated'])
        await ask('beside a bad token', good, { authorization: 'Bearer let-me-in' }, [401, 'unauthenticated'])
        if (permission) await ask('without the permission', keyless, {}, [403, 'forbidden'])
        if (method !== 'get') await ask('without the value', good, { 'x-xsrf-token': '' }, [403, 'csrf_mismatch'])
      })
      cells.settle()
    })

    it('takes a session that is good', async () => {
      const isTried = takesHeader(id, 'Accord-Dry-Run')
      if ((method !== 'get' && !isTried) || (!isFull && !some.has(id))) return
      const headers: Record<string, string> = {
        cookie: good.cookie,
        origin: ours,
        ...(method !== 'get' && { 'x-csrf-token': good.csrf, 'accord-dry-run': 'true' }),
      }
      const { status } = await send(of(), id, { ...request(of(), id), token: null, headers })
      cells.check(`${id}, a session that is good`, [401, 403].includes(status), false)
      cells.settle()
    })
  })
}

/** Requests the CSRF value and signs in with it, like a page. */
async function signIn({ server }: World, email: string): Promise<Session> {
  const pairs = (headers: Record<string, unknown>): string[] =>
    [headers['set-cookie'] ?? []].flat().map((each) => String(each).split(';')[0] ?? '')
  const offered = pairs((await server.anonymous.get('/csrf-cookie', { headers: { origin: ours } })).headers)
  const value = (all: string[]): string =>
    decodeURIComponent(all.find((each) => each.startsWith('XSRF-TOKEN='))?.slice(11) ?? '')
  const headers = { origin: ours, cookie: offered.join('; '), 'x-xsrf-token': value(offered) }
  const {
    headers: made,
    status,
    text,
  } = await server.anonymous.post('/session', { email, password: adminPassword }, { headers })
  if (status !== 200) throw new Error(text)
  const all = pairs(made)
  return { cookie: all.join('; '), csrf: value(all) }
}
