// Creates users for tests about permissions. Each user has a separate role with exactly the given
// permission keys.
import type { Schema } from '../../src/contract/types.ts'
import type { Caller, TestServer } from './app.ts'
import { given } from './given.ts'

export const password = 'a password to guess'

export interface Someone {
  id: number
  roleId: number
  email: string
  caller: Caller
}

/** Creates a role and a signed-in user with this role. Discards the events of the creation. */
export async function someone(
  server: TestServer,
  keys: readonly string[] | 'all',
  changes: Record<string, unknown> = {},
): Promise<Someone> {
  const make = given(server.admin)
  const role = await make.role(
    keys === 'all'
      ? { permission_type: 'all', permissions: null }
      : { permission_type: 'custom', permissions: [...keys] as Schema<'PermissionKey'>[] },
  )
  const user = await make.user({ role_id: role.id, password, password_confirmation: password, ...changes })
  const caller = await server.as(user.id)
  server.events()
  return { id: user.id, roleId: role.id, email: user.email, caller }
}
