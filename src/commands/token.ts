// `accord token create`: creates a named token and prints the token once.
import { caseFold } from '../../db/schema/case-folding.ts'
import type { Config } from '../config/config.ts'
import { didYouMean } from '../contract/input/validation-errors.ts'
import { knownAbilities } from '../kernel/auth/abilities.ts'
import { issueToken } from '../kernel/auth/tokens.ts'
import { now } from '../kernel/context.ts'
import { daysAfter } from '../kernel/runtime/clock.ts'
import { write } from '../kernel/write/write.ts'
import { presentToken, tokenRows } from '../resources/tokens/rows.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { type ReportOptions, report } from './report.ts'

interface Options extends ReportOptions {
  email: string
  name: string
  abilities: string
  expiresInDays: string
}

export async function createTokenCommand(config: Config, options: Options): Promise<void> {
  const name = options.name.trim()
  if (name === '' || name.length > 255) throw new CommandError('--name must have 1 to 255 characters.')
  const abilities = readAbilities(options.abilities)
  const days = readDays(options.expiresInDays)

  await asSystem(config, async (ctx) => {
    const user = await ctx.db
      .selectFrom('users')
      .select(['id', 'name', 'email', 'is_active'])
      .where('email_key', '=', caseFold(options.email.trim()))
      .executeTakeFirst()
    if (!user) throw new CommandError(`No user has the e-mail address ${options.email}.`)
    if (user.is_active !== 1)
      throw new CommandError(
        `${user.email} is disabled, so the token would be refused. Run: accord user enable ${user.email}`,
      )
    const expiresAt = days === null ? null : daysAfter(ctx.time, days)
    const token = { userId: user.id, name, kind: 'personal', abilities, expiresAt, allowedIps: [] } as const
    let text = ''
    let tokenId = 0
    await write(ctx, 'user.token.create', { entity: 'tokens', input: { name, abilities } }, async (ctx) => {
      const issued = await issueToken(ctx.db, token, now(ctx))
      text = issued.text
      tokenId = issued.id
      const row = await tokenRows(ctx).where('tokens.id', '=', issued.id).executeTakeFirstOrThrow()
      return { id: issued.id, entity: { ...presentToken(row) } }
    })
    console.error(
      `Token "${name}" for ${user.name}, ${expiresAt === null ? 'never expires' : `expires ${expiresAt}`}; it is shown only now:`,
    )
    // Standard output gets only the token, so that a script can read it.
    report(options, { id: tokenId, token: text, abilities, expires_at: expiresAt }, [text])
  })
}

function readAbilities(text: string): string[] {
  const abilities = [
    ...new Set(
      text
        .split(',')
        .map((each) => each.trim())
        .filter(Boolean),
    ),
  ]
  if (abilities.length === 0) throw new CommandError('--abilities must name at least one ability.')
  for (const ability of abilities) {
    if (!knownAbilities.includes(ability))
      throw new CommandError(`There is no ability ${ability}.${didYouMean(ability, knownAbilities)}`)
  }
  return abilities
}

function readDays(text: string): number | null {
  if (text === 'never') return null
  const days = Number(text)
  if (!/^\d+$/.test(text) || days < 1 || days > 365)
    throw new CommandError(`--expires-in-days must be 1 to 365 or never, not "${text}".`)
  return days
}
