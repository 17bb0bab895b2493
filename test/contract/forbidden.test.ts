// Every operation with a permission, called by a role that holds all keys but that one, by a token without the ability, and
// by a role and token that hold exactly these.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth.ts'
import { permissionKeys, withAncestors } from '../../src/kernel/permissions.ts'
import { start } from '../support/app.ts'
import { facts } from '../support/schema.ts'
import { changesNothing, request, send, startWorld, type World } from './support.ts'

let world: World
let user: number

beforeAll(async () => {
  world = await startWorld()
  const { db } = world.server.store
  const stamps = { created_at: start, updated_at: start }
  const role = await db
    .insertInto('roles')
    .values({ name: 'Walker', name_key: 'walker', permission_type: 'custom', permissions: '[]', ...stamps })
    .returning('id')
    .executeTakeFirstOrThrow()
  const walker = {
    name: 'Walker',
    name_key: 'walker',
    email: 'walker@example.com',
    email_key: 'walker@example.com',
    password_hash: 'none',
    status: 1,
  }
  user = (
    await db
      .insertInto('users')
      .values({ ...walker, view_permission: 'global', role_id: role.id, ...stamps })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id
  world.server.keep()
})
afterAll(() => world.server.close())

/** A token of the walker, whose role holds these keys and no others. */
async function holding(permissions: readonly string[], abilities: readonly string[]): Promise<string> {
  const { db } = world.server.store
  await db
    .updateTable('roles')
    .set({ permissions: JSON.stringify(permissions) })
    .where('name_key', '=', 'walker')
    .execute()
  const token = { userId: user, name: 'walker', kind: 'personal', abilities, expiresAt: null, allowedIps: [] } as const
  const { text } = await issueToken(db, token, start)
  await world.server.caller(text).get('/account')
  return text
}

/** What is done in the background later, without the token, must be covered by it at once. */
const alsoNeeded: Record<string, string[]> = { validateImport: ['persons:write'], startImport: ['persons:write'] }

describe.each(facts.filter(([, each]) => each.permission !== null))('%s', (id, { permission, ability }) => {
  const key = permission ?? ''

  it(`is refused to a role that holds every key but ${key}`, async () => {
    const others = permissionKeys.filter((each) => each !== key && !each.startsWith(`${key}.`))
    const token = await holding(others, ['*'])
    const findings = await changesNothing(world, async () => {
      const { status, body } = await send(world, id, { ...request(world, id), token })
      expect.soft([status, body.code, body.required]).toEqual([403, 'forbidden', key])
    })
    expect(findings).toEqual([])
  })

  it(`is open to a role with ${key} alone, through a token with the ability alone`, async () => {
    const token = await holding(withAncestors([key]), [ability ?? 'files:read', ...(alsoNeeded[id] ?? [])])
    const { status, text } = await send(world, id, { ...request(world, id, 'required'), token })
    expect([401, 403].includes(status) ? text : 'allowed').toBe('allowed')
    await world.server.rewind()
  })
})

describe.each(facts.filter(([, each]) => each.ability !== null))('%s', (id, { ability }) => {
  it(`is refused to a token without ${ability}`, async () => {
    const [area, verb] = (ability ?? '').split(':')
    const token = await holding(permissionKeys, [
      `${area}:${verb === 'read' ? 'write' : 'read'}`,
      `${area === 'files' ? 'reports' : 'files'}:${area === 'any' ? 'write' : '*'}`,
    ])
    const findings = await changesNothing(world, async () => {
      const { status, body } = await send(world, id, { ...request(world, id), token })
      expect.soft([status, body.code, body.required]).toEqual([403, 'forbidden', ability])
    })
    expect(findings).toEqual([])
  })
})
