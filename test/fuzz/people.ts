// The callers of the fuzzer. If their requests delete their account, role or token, they get new
// ones, so that later requests are not all refused.
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start, type TestServer } from '../support/app.ts'
import { addUser } from '../support/viewers.ts'
import type { Header } from './headers.ts'
import type { Pool } from './pool.ts'
import type { Random } from './random.ts'
import type { Who } from './requests.ts'

const views = { admin: 'global', individual: 'individual', group: 'group', narrow: 'global' } as const
type Person = keyof typeof views
const narrow = ['leads:read', 'leads:write', 'contacts:read', 'settings:read', 'users:read']

export interface People {
  headerOf(who: Who, random: Random, pool: Pool): Header | undefined
  /** Called after a reply that refused a valid caller. */
  renew(who: Who): Promise<void>
}

export async function peopleOf(server: TestServer): Promise<People> {
  const { db } = server.store
  const users: Partial<Record<Person, number>> = { admin: 1 }
  const tokens: Partial<Record<Person, string>> = {}
  let count = 0

  async function renew(who: Who): Promise<void> {
    if (!(who in views)) return
    const person = who as Person
    const found = await db
      .selectFrom('users')
      .select(['id', 'role_id'])
      .where('id', '=', users[person] ?? 0)
      .executeTakeFirst()
    if (!found)
      users[person] = (
        await addUser(server, `${person}-${++count}`, {
          view: views[person],
          group: `fuzzers-${count}`,
          permissions: [],
        })
      ).id
    const id = users[person] ?? 0
    const { role_id } = await db
      .updateTable('users')
      .set({ is_active: 1, view_permission: views[person] })
      .where('id', '=', id)
      .returning('role_id')
      .executeTakeFirstOrThrow()
    await db.updateTable('roles').set({ permission_type: 'all', permissions: null }).where('id', '=', role_id).execute()
    const abilities = person === 'narrow' ? narrow : ['*']
    tokens[person] = (
      await issueToken(
        db,
        { userId: id, name: 'fuzz', kind: 'personal', abilities, expiresAt: null, allowedIps: [] },
        start,
      )
    ).text
  }

  for (const person of Object.keys(views) as Person[]) await renew(person)
  return {
    renew,
    headerOf(who, random, pool) {
      if (who === 'anonymous') return undefined
      if (who === 'garbage')
        return [
          'authorization',
          random.pick(['Bearer x', `Bearer 1|${'0'.repeat(40)}`, 'Basic eDp5', `Bearer ${'z'.repeat(300)}`]),
        ]
      const token = who === 'other' ? random.pick([...pool.tokens, tokens.admin]) : tokens[who]
      return ['authorization', `Bearer ${token}`]
    },
  }
}
