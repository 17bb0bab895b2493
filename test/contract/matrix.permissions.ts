// Permissions: every operation is called with all permissions except the required one, with no
// permissions, without the required ability, and with exactly the required permission and ability.
import { beforeAll, describe, expect, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import { withAncestors } from '../../src/kernel/auth/permissions.ts'
import { facts } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { type Cells, keep, token, untouched } from './matrix.ts'
import { request, send, type World } from './support.ts'

/** The abilities that the background work of these operations also requires. */
const alsoNeeded: Record<string, string[]> = {
  validateImport: ['persons:write'],
  startImport: ['persons:write'],
  createWorkflow: ['leads:*', 'settings:write'],
  upsertWorkflow: ['leads:*', 'settings:write'],
  updateWorkflow: ['leads:*'],
  createWebhook: ['*:read'],
  // A campaign is sent to persons by e-mail with the rights of its user.
  createCampaign: ['persons:read', 'emails:write'],
  upsertCampaign: ['persons:read', 'emails:write'],
  updateWebhook: ['*:read'],
  rotateWebhookSecret: ['*:read'],
  convertLeadToQuote: ['leads:read', 'quotes:read'],
}

/** Further permissions that an operation needs, because its reply has content of other records. */
const alsoPermitted: Record<string, string[]> = {
  convertLeadToQuote: ['leads.view', 'quotes'],
  mergePersons: ['contacts.persons.edit'],
  unmergePerson: ['contacts.persons.edit'],
  mergeOrganizations: ['contacts.organizations.edit'],
  unmergeOrganization: ['contacts.organizations.edit'],
}

/** Operations for every user, regardless of the role. Their replies are filtered. */
const forAnyUser = [
  ...['logout', 'getSession', 'deleteSession', 'getAccount', 'updateAccount'],
  ...['listAccountSessions', 'deleteAccountSession', 'listColleagues'],
  ...['listTokens', 'createToken', 'getToken', 'deleteToken'],
  ...['listAttributes', 'getAttribute', 'lookupAttributeValues', 'searchRecords', 'bulkWrite'],
  ...['uploadFile', 'getFile', 'deleteFile', 'downloadFile'],
]

const guarded = facts.filter(([, each]) => each.permission !== null)
const anybody = facts.filter(([, each]) => !each.public && each.permission === null)

/** Returns abilities that are similar to the required ability but do not cover it. */
function beside(ability: string): string[] {
  const [area, verb] = ability.split(':')
  return [
    `${area}:${verb === 'read' ? 'write' : 'read'}`,
    `${area === 'files' ? 'reports' : 'files'}:${area !== 'any' ? '*' : verb === 'read' ? 'write' : 'read'}`,
    ...(verb === 'write' ? ['*:read'] : []),
    ...(area === 'users' ? ['settings:*'] : []),
    ...(area === 'settings' ? ['users:*'] : []),
  ]
}

export function permissionCells(of: () => World, cells: Cells): void {
  let user: number
  let role: number

  beforeAll(async () => {
    const world = of()
    user = (await addUser(world.server, 'Walker', { permissions: [] })).id
    const { db } = world.server.store
    const found = await db.selectFrom('users').select('role_id').where('id', '=', user).executeTakeFirstOrThrow()
    role = found.role_id
    await keep(world)
  })

  /** Returns a token of a user whose role has exactly these permissions. */
  async function holding(permissions: readonly string[], abilities: readonly string[] = ['*']): Promise<string> {
    const world = of()
    const { db } = world.server.store
    const text = await token(world, { userId: user, abilities })
    await db
      .updateTable('roles')
      .set({ permissions: JSON.stringify(permissions) })
      .where('id', '=', role)
      .execute()
    return text
  }

  async function refuses(name: string, id: string, token: string, required: string): Promise<void> {
    const world = of()
    const { status, body } = await send(world, id, { ...request(world, id), token })
    cells.check(name, [status, body.code, body.required], [403, 'forbidden', required])
  }

  describe.each(guarded)('%s', (id, { permission, ability }) => {
    const key = permission ?? ''

    it(`is refused without ${key}, whatever else the role holds, and does nothing`, async () => {
      const world = of()
      const others = permissionKeys.filter((each) => each !== key && !each.startsWith(`${key}.`))
      const tokens = [
        [`${id}, every key but ${key}`, others],
        [`${id}, no key at all`, []],
      ] as const
      for (const [name, keys] of tokens) {
        const token = await holding(keys)
        await untouched(cells, name, world, () => refuses(name, id, token, key))
      }
      cells.settle()
    })

    it(`is open to a role with ${key} alone, through a token with the ability alone`, async () => {
      const world = of()
      const token = await holding(withAncestors([key, ...(alsoPermitted[id] ?? [])]), [
        ability ?? 'files:read',
        ...(alsoNeeded[id] ?? []),
      ])
      const { status, text } = await send(world, id, { ...request(world, id, 'required'), token })
      cells.check(`${id}, ${key} and ${ability} alone`, [401, 403].includes(status) ? text : 'allowed', 'allowed')
      await world.server.rewind()
      cells.settle()
    })
  })

  describe.each(facts.filter(([, each]) => each.ability !== null))('%s', (id, { ability }) => {
    it(`is refused to a token without ${ability}, and does nothing`, async () => {
      const world = of()
      const name = `${id}, without the ability ${ability}`
      const token = await holding(permissionKeys, beside(ability ?? ''))
      await untouched(cells, name, world, () => refuses(name, id, token, ability ?? ''))
      cells.settle()
    })
  })

  describe('a role without keys', () => {
    it('reaches what is for any user, and nothing else', async () => {
      const world = of()
      for (const [id] of anybody) cells.check(`${id} is for any user`, forAnyUser.includes(id), true)
      for (const id of forAnyUser) {
        const token = await holding([])
        const { status, body } = await send(world, id, { ...request(world, id), token })
        // A token of another user is refused for another reason.
        const isRefused = status === 401 || (status === 403 && body.required !== 'settings.user.tokens')
        cells.check(`${id}, no key at all`, isRefused, false)
        await world.server.rewind()
      }
      cells.settle()
    })

    it('finds nothing by search and by lookup', async () => {
      const world = of()
      const caller = world.server.caller(await holding([]))
      for (const word of ['lead', 'example', 'deal', 'person', 'admin'])
        cells.check(`search for ${word}`, (await caller.get(`/search?q=${word}`)).body?.data, [])
      for (const type of ['leads', 'persons', 'organizations', 'quotes', 'products', 'tags', 'sources']) {
        const { status, body } = await caller.get(`/settings/attribute-lookups/${type}`)
        cells.check(`lookup of ${type}`, status === 200 ? body.data : status, status === 200 ? [] : status)
        expect([200, 403, 404, 422]).toContain(status)
      }
      await world.server.rewind()
      cells.settle()
    })
  })
}
