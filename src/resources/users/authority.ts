// Who may change whom (DOMAIN 7.1, 15.6): the ceiling protects users whose role holds more than the caller's, and nobody
// can lock the installation, or the own account, out.
import type { Context, SignedIn } from '../../kernel/context.ts'
import { isProtected } from '../../kernel/errors.ts'
import { type Grants, someoneHoldsEverything, stayBelow } from '../roles/ceiling.ts'
import { stayWithinView } from './view.ts'

/** A user with what the role grants. */
export interface Governed extends Grants {
  id: number
  status: number
  role_id: number
  view_permission: string
}

/** What a write makes of the account; undefined leaves it as it is. */
export interface Standing {
  status: boolean | undefined
  role: ({ id: number } & Grants) | undefined
}

/** Throws 403 above the ceiling, 409 when it would lock somebody out. `changes`: whether anything changes at all. */
export async function checkAuthority(
  ctx: Context,
  current: Governed | null,
  next: Standing,
  changes: boolean,
): Promise<void> {
  if (current && changes) {
    stayBelow(ctx, current)
    // Whoever may set a password can sign in with the view that goes with it.
    stayWithinView(ctx, current.view_permission as SignedIn['viewPermission'])
  }
  if (next.role && next.role.id !== current?.role_id) stayBelow(ctx, next.role)
  if (!current) return
  const deactivates = next.status === false && current.status === 1
  if (deactivates && current.id === ctx.user?.id) throw isProtected('Nobody can deactivate the own account.')
  const demotes = next.role !== undefined && next.role.permission_type !== 'all'
  if (deactivates || demotes) await refuseLast(ctx, current)
}

/** Throws 403 above the ceiling, 409 for the own account and for the last active one that holds every permission. */
export async function checkDeletable(ctx: Context, user: Governed): Promise<void> {
  stayBelow(ctx, user)
  if (user.id === ctx.user?.id) throw isProtected('Nobody can delete the own account.')
  await refuseLast(ctx, user)
}

async function refuseLast(ctx: Context, user: Governed): Promise<void> {
  if (user.status !== 1 || user.permission_type !== 'all') return
  if (await someoneHoldsEverything(ctx, { user: user.id })) return
  throw isProtected('This is the last active user who holds every permission.')
}
