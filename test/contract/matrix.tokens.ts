// Privilege escalation: a token can pass on only its abilities, a user only own
// permissions. Tokens of other users are 404, and /metrics without a token is allowed only from
// loopback.
import { beforeAll, describe, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import { knownAbilities } from '../../src/kernel/auth/abilities.ts'
import { withAncestors } from '../../src/kernel/auth/permissions.ts'
import { addUser } from '../support/viewers.ts'
import { type Cells, keep, token, untouched } from './matrix.ts'
import type { World } from './support.ts'

/** Returns whether a token with the ability `held` may pass on `wanted`. */
function gives(held: string, wanted: string): boolean {
  const [area, verb] = held.split(':')
  if (held === '*' || held === wanted) return true
  if (held === '*:read') return wanted.endsWith(':read')
  return verb === '*' && wanted.startsWith(`${area}:`)
}

export function tokenCells(of: () => World, cells: Cells): void {
  const dry = { headers: { 'accord-dry-run': 'true' } }
  let walker: number
  let role: number

  beforeAll(async () => {
    const { server } = of()
    await server.rewind()
    walker = (await addUser(server, 'Granter', { permissions: [] })).id
    const found = await server.store.db
      .selectFrom('users')
      .select('role_id')
      .where('id', '=', walker)
      .executeTakeFirstOrThrow()
    role = found.role_id
    await keep(of())
  })

  const holding = async (keys: readonly string[], about: object = {}) => {
    const { server } = of()
    await server.store.db
      .updateTable('roles')
      .set({ permissions: JSON.stringify(keys) })
      .where('id', '=', role)
      .execute()
    return server.caller(await token(of(), { userId: walker, ...about }))
  }

  describe('createToken', () => {
    it.each(['leads:read', 'leads:write', 'leads:*', '*:read', 'account:*'])(
      'gives on no more than %s',
      async (held) => {
        const caller = await holding([], { abilities: [held, 'account:write'] })
        for (const wanted of knownAbilities) {
          const may = gives(held, wanted) || wanted === 'account:write'
          const { status } = await caller.post('/tokens', { name: 'more', abilities: [wanted] }, dry)
          cells.check(`a token with ${held} gives on ${wanted}`, status, may ? 200 : 403)
        }
        cells.check('all, when none is named', (await caller.post('/tokens', { name: 'more' }, dry)).status, 403)
        cells.settle()
      },
    )

    it('gives on no wider network and no longer life', async () => {
      const caller = await holding([], { allowedIps: ['127.0.0.0/30'] })
      for (const [allowed_ips, status] of [
        [['127.0.0.1'], 200],
        [['127.0.0.0/31'], 200],
        [['127.0.0.0/29'], 422],
        [['0.0.0.0/0'], 422],
        [['::/0'], 422],
        [['127.0.0.1', '10.0.0.1'], 422],
      ] as const)
        cells.check(
          `allowed_ips ${allowed_ips}`,
          (await caller.post('/tokens', { name: 'wide', allowed_ips }, dry)).status,
          status,
        )
      const none = await caller.post('/tokens', { name: 'anywhere', allowed_ips: [] }, dry)
      cells.check('allowed_ips of none', none.body?.data?.allowed_ips, ['127.0.0.0/30'])
      cells.check('for ever', (await caller.post('/tokens', { name: 'ever', expires_at: null }, dry)).status, 403)
      cells.check(
        'for two years',
        (await caller.post('/tokens', { name: 'long', expires_in_days: 730 }, dry)).status,
        422,
      )
      cells.settle()
    })

    it('creates none for another user, and does not find those of others', async () => {
      const caller = await holding([])
      const [, other] = await Promise.all([token(of()), token(of())])
      const id = other.split('|')[0]
      await keep(of())
      await untouched(cells, 'tokens of others', of(), async () => {
        for (const key of [{ user_id: 1 }, { kind: 'login' }])
          cells.check(`${Object.keys(key)}`, (await caller.post('/tokens', { name: 'yours', ...key }, dry)).status, 422)
        cells.check('its user', (await caller.post('/tokens', { name: 'own' }, dry)).body?.data?.user_id, walker)
        cells.check('getToken', (await caller.get(`/tokens/${id}`)).status, 404)
        cells.check('deleteToken', (await caller.delete(`/tokens/${id}`)).status, 404)
        cells.check('listTokens', (await caller.get('/tokens?user_id=1')).status, 403)
      })
      cells.settle()
    })
  })

  describe('a role', () => {
    it('holds the ancestors of its keys, and nothing that was not asked for', async () => {
      const { server } = of()
      for (const key of permissionKeys) {
        const body = { name: `Only ${key}`, permission_type: 'custom', permissions: [key] }
        const { body: answer } = await server.admin.post('/settings/roles', body, dry)
        const parts = key.split('.')
        const ancestors = parts
          .map((_, at) => parts.slice(0, at + 1).join('.'))
          .filter((each) => permissionKeys.includes(each))
        cells.check(`role with ${key}`, [...(answer.data?.permissions ?? [])].sort(), [...ancestors].sort())
      }
      cells.settle()
    })

    it('is given on by those alone who hold what it holds', async () => {
      const own = withAncestors([
        'settings.user.roles.create',
        'settings.user.roles.edit',
        'settings.user.users.create',
        'leads.view',
      ])
      const caller = await holding(own)
      const roleOf = async (keys: string[] | null) => {
        const body = { permission_type: keys ? 'custom' : 'all', permissions: keys }
        return (await caller.post('/settings/roles', { name: 'Given on', ...body }, dry)).status
      }
      for (const key of permissionKeys)
        cells.check(`gives on ${key}`, await roleOf([key]), own.includes(key) ? 200 : 403)
      cells.check('gives on everything', await roleOf(null), 403)
      const edit = await caller.put(`/settings/roles/${role}`, { permissions: [...own, 'leads.delete'] }, dry)
      cells.check('takes more', edit.status, 403)
      const person = {
        name: 'New',
        email: 'new@example.com',
        password: 'a password to guess',
        password_confirmation: 'a password to guess',
      }
      cells.check(
        'assigns an all role',
        (await caller.post('/settings/users', { ...person, role_id: 1 }, dry)).status,
        403,
      )
      cells.check(
        'assigns its own role',
        (await caller.post('/settings/users', { ...person, role_id: role }, dry)).status,
        200,
      )
      cells.settle()
    })

    it('of the account does not change by its own hand', async () => {
      const caller = await holding([])
      for (const change of [
        { role_id: 1 },
        { view_permission: 'global' },
        { is_active: true },
        { permissions: ['*'] },
        { group_ids: [1] },
      ]) {
        const { status, body } = await caller.put('/account', { name: 'Same Role', ...change }, dry)
        cells.check(
          `account with ${Object.keys(change)}`,
          [status, body?.data?.role_id, body?.data?.permissions],
          [200, role, []],
        )
        cells.check(`nothing but ${Object.keys(change)}`, (await caller.put('/account', change, dry)).status, 422)
      }
      cells.settle()
    })
  })

  describe('getMetrics', () => {
    const ask = async (remoteAddress: string, headers: Record<string, string>) =>
      (
        await of().server.inject({
          method: 'GET',
          url: '/metrics',
          remoteAddress,
          headers: { accept: 'application/json', ...headers },
        })
      ).statusCode

    it('is for this machine, else for reports:read, and a proxy is not this machine', async () => {
      const bearer = async (abilities: string[]) => ({ authorization: `Bearer ${await token(of(), { abilities })}` })
      const forwarded = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-forwarded-host', 'via']
      cells.check('from here', await ask('127.0.0.1', {}), 200)
      cells.check('from here, by another name', await ask('::1', {}), 200)
      cells.check('from elsewhere', await ask('203.0.113.9', {}), 401)
      for (const name of forwarded.slice(0, 3))
        cells.check(`with ${name}`, await ask('127.0.0.1', { [name]: '203.0.113.9' }), 401)
      cells.check('from elsewhere as from here', await ask('203.0.113.9', { 'x-forwarded-for': '127.0.0.1' }), 401)
      cells.check('with reports:read', await ask('203.0.113.9', await bearer(['reports:read'])), 200)
      cells.check('with another ability', await ask('203.0.113.9', await bearer(['leads:read'])), 403)
      await of().server.rewind()
      cells.settle()
    })
  })
}
