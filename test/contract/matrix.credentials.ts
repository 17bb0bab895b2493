// Credentials: every protected operation refuses every invalid credential, and every public
// operation ignores it. The public operations are listed with their reasons.
import { beforeAll, describe, it } from 'vitest'
import { facts } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { type Cells, keep, token, untouched } from './matrix.ts'
import { request, send, type World } from './support.ts'

/**
 * The public operations and their reasons. No other operation may
 * be public.
 */
const open: Record<string, string> = {
  login: 'makes the first token',
  getCsrfCookie: 'comes before a session',
  createSession: 'makes a session',
  forgotPassword: 'for who cannot sign in',
  getResetPasswordPage: 'for who cannot sign in',
  resetPassword: 'proves itself with the token of the mail',
  receiveEmail: 'proves itself with the secret of inbound mail (14.4)',
  getPublicWebForm: 'web forms are for visitors (19)',
  submitWebForm: 'web forms are for visitors (19)',
  getWebFormPage: 'web forms are for visitors (19)',
  getWebFormScript: 'web forms are for visitors (19)',
  getUnsubscribePage: 'proves itself with the token of the link (20)',
  unsubscribe: 'proves itself with the token of the link (20)',
  downloadSignedFile: 'proves itself with the signature of the link (16)',
  getDocumentation: 'the manual',
  getErrorCatalogue: 'the manual',
  getOpenapiJson: 'the manual',
  getOpenapiYaml: 'the manual',
  getOperationMarkdown: 'the manual',
  getAsyncapiJson: 'the manual',
  getAsyncapiYaml: 'the manual',
  getArazzo: 'the manual',
  getPostmanCollection: 'the manual',
  getLlmsText: 'the manual',
  getApiCatalog: 'the manual',
  getHealth: 'for who watches the process',
  getReadiness: 'for who watches the process',
  getMetrics: 'for who watches the process: from this machine, else with reports:read',
}

const guarded = facts.filter(([, each]) => !each.public)
const daysAgo = (days: number): string => new Date(Date.parse('2026-03-01T09:30:00Z') - days * 86_400_000).toISOString()

export function credentialCells(of: () => World, cells: Cells): void {
  const refused: Record<string, [token: string | null, code: string]> = {}

  beforeAll(async () => {
    const world = of()
    const { db } = world.server.store
    const good = await token(world)
    const [goodId = '', secret = ''] = good.split('|')
    const revoked = await token(world)
    await db
      .deleteFrom('tokens')
      .where('id', '=', Number(revoked.split('|')[0]))
      .execute()
    const { id: inactive } = await addUser(world.server, 'Inactive', { isActive: false })
    const none = 'unauthenticated'
    Object.assign(refused, {
      'no token': [null, none],
      garbage: ['let-me-in', none],
      'an unknown id': [`999999|${secret}`, none],
      'a wrong secret': [`${goodId}|${[...secret].reverse().join('')}`, none],
      revoked: [revoked, none],
      expired: [await token(world, { expiresAt: '2026-03-01T09:30:00.000Z' }), none],
      'idle for too long': [await token(world, { usedAt: daysAgo(31) }), none],
      'from another address': [await token(world, { allowedIps: ['10.0.0.0/8', '2001:db8::/32'] }), none],
      'of an inactive user': [await token(world, { userId: inactive }), 'account_inactive'],
    })
    await keep(world)
  })

  describe.each(guarded)('%s', (id) => {
    it('answers 401 with a problem to every token that is not good, and does nothing', async () => {
      const world = of()
      await untouched(cells, id, world, async () => {
        for (const [name, [token, code]] of Object.entries(refused)) {
          const { status, headers, body } = await send(world, id, { ...request(world, id), token })
          const [type] = String(headers['content-type']).split(';')
          const found = [status, headers['www-authenticate'], body?.code, type]
          cells.check(`${id}, ${name}`, found, [401, 'Bearer', code, 'application/problem+json'])
        }
      })
      cells.settle()
    })

    it('answers 401 with the login page to a caller who does not ask for JSON, and does nothing', async () => {
      const world = of()
      await untouched(cells, id, world, async () => {
        for (const accept of ['text/html', '*/*', '']) {
          const wanted = { ...request(world, id), token: null, headers: { accept } }
          const { status, headers, text } = await send(world, id, wanted)
          const [type] = String(headers['content-type']).split(';')
          const found = [status, headers['www-authenticate'], type, text.includes('<form')]
          cells.check(`${id}, Accept: ${accept}`, found, [401, 'Bearer', 'text/html', true])
        }
      })
      cells.settle()
    })
  })

  describe('public operations', () => {
    it('is what has a reason to be', () => {
      for (const [id, fact] of facts) cells.check(`${id} is public`, fact.public, Object.hasOwn(open, id))
      cells.settle()
    })

    it('does not look at a bearer token', async () => {
      const world = of()
      for (const id of Object.keys(open)) {
        const wanted = request(world, id)
        const statuses: number[] = []
        for (const token of [null, 'let-me-in', refused['of an inactive user']?.[0] ?? null]) {
          statuses.push((await send(world, id, { ...wanted, token })).status)
          await world.server.rewind()
        }
        cells.check(`${id}, without a token and with a bad one`, new Set(statuses).size, 1)
      }
      cells.settle()
    })
  })

  describe('a bearer token', () => {
    it('is never read from the query string or a cookie', async () => {
      const world = of()
      const { token } = world.server.admin
      for (const name of ['token', 'access_token', 'api_token']) {
        const url = `/api/admin/sources?${name}=${encodeURIComponent(token ?? '')}`
        const { status } = await send(world, 'listSources', { method: 'GET', url, token: null })
        cells.check(`${name} in the query`, status, 401)
        const headers = { cookie: `${name}=${encodeURIComponent(token ?? '')}` }
        const sent = await send(world, 'listSources', {
          method: 'GET',
          url: '/api/admin/sources',
          token: null,
          headers,
        })
        cells.check(`${name} in a cookie`, sent.status, 401)
      }
      cells.settle()
    })
  })
}
