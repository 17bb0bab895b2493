// The user with whose rights a webhook, workflow or campaign acts: the user who changed it last.
// A token that changes one of them must have the abilities that it will use.
import type { OperationFact } from '../../contract/types.ts'
import { signedInAs } from '../../kernel/auth/tokens.ts'
import { assertCanCall, type Context, type CurrentUser } from '../../kernel/context.ts'

/**
 * Returns the new `changed_by_id` of a row, which is the calling user. Returns undefined when the
 * write changes no column.
 */
export function changedById({ user }: Context, columns: object, current: object | null): number | undefined {
  const stored = current as Record<string, unknown> | null
  const isChange = Object.entries(columns).some(([column, value]) => value !== undefined && value !== stored?.[column])
  return isChange ? user?.id : undefined
}

/** Returns the user with the user's current rights; null when the user is deleted or inactive. */
export const loadActingUser = async ({ db }: Context, id: number | null): Promise<CurrentUser | null> =>
  id === null ? null : signedInAs(db, id)

export const inactiveReason = (noun: 'webhook' | 'workflow' | 'campaign'): string =>
  `The user who changed this ${noun} last is deleted or inactive. Save a change to it so that it acts with your rights.`

/**
 * Throws 403 unless the calling token has the abilities of all `operations`. The webhook,
 * workflow or campaign later runs with all rights of the user, which may exceed the rights of the
 * token. A session has all abilities.
 */
export function requireTokenAbilities(ctx: Context, operations: readonly Pick<OperationFact, 'ability'>[]): void {
  for (const ability of new Set(operations.map((each) => each.ability)))
    assertCanCall(ctx, { permission: null, ability })
}
