// Webhooks and workflows act later, with the rights of the user who changed them last (DOMAIN
// chapter 0, rows 14 and 16): who that is, and what the calling token must be able to do itself.
import type { OperationFact } from '../../contract/types.ts'
import { signedInAs } from '../../kernel/auth/tokens.ts'
import { assertCanCall, type Context, type CurrentUser } from '../../kernel/context.ts'

/** The `changed_by_id` to store; undefined when no column changes. */
export function changedById({ user }: Context, columns: object, current: object | null): number | undefined {
  const stored = current as Record<string, unknown> | null
  const isChange = Object.entries(columns).some(([column, value]) => value !== undefined && value !== stored?.[column])
  return isChange ? user?.id : undefined
}

/** The user with current rights; null when the user is deleted or inactive. */
export const loadActingUser = async ({ db }: Context, id: number | null): Promise<CurrentUser | null> =>
  id === null ? null : signedInAs(db, id)

export const inactiveReason = (noun: 'webhook' | 'workflow'): string =>
  `The user who changed this ${noun} last is deleted or inactive. Save a change to it so that it acts with your rights.`

/**
 * Throws 403 unless the calling token has the abilities of all these operations: what it configures
 * runs with all rights of the user, which may exceed those of the token. A session has all of them.
 */
export function requireTokenAbilities(ctx: Context, operations: readonly Pick<OperationFact, 'ability'>[]): void {
  for (const ability of new Set(operations.map((each) => each.ability)))
    assertCanCall(ctx, { permission: null, ability })
}
