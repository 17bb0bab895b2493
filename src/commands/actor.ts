// The user in whose name a command acts.
import { caseFold } from '../../db/schema/case-folding.ts'
import type { Config } from '../config/config.ts'
import { signedInAs } from '../kernel/auth/tokens.ts'
import type { Context } from '../kernel/context.ts'
import { CommandError } from './command-error.ts'

/** Returns the active user with the address, by default that of the first administrator. */
export async function actor(ctx: Context, config: Config, email = config.adminEmail) {
  const row = await ctx.db
    .selectFrom('users')
    .select('id')
    .where('email_key', '=', caseFold(email.trim()))
    .executeTakeFirst()
  const user = row ? await signedInAs(ctx.db, row.id) : null
  if (!user) throw new CommandError(`No active user has the e-mail address ${email}. Name one with --as.`)
  return user
}
