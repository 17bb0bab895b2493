// `accord user`: calls the user operations of the API as the system. Listeners, the event log and
// the rule about the last administrator thus apply.
import { caseFold } from '../../db/schema/case-folding.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../kernel/context.ts'
import { oneLine } from '../kernel/values/format.ts'
import { handlers } from '../operations.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { randomPassword } from './install/install.ts'
import { askPassword, readPassword } from './password.ts'
import { type ReportOptions, report } from './report.ts'

interface Creation extends ReportOptions {
  name: string
  email: string
  role: string
  password?: string
  passwordStdin?: boolean
}

export async function createUserCommand(config: Config, options: Creation): Promise<void> {
  // Over HTTP, the contract checks the name and the e-mail address. A direct call of the handler
  // skips the contract.
  const name = options.name.trim()
  if (name === '' || name.length > 100) throw new CommandError('--name must have 1 to 100 characters.')
  if (!/^[^\s@]+@[^\s@]+$/.test(options.email) || options.email.length > 254) {
    throw new CommandError(`--email must be an e-mail address, not "${options.email}".`)
  }
  const given = options.passwordStdin ? await readPassword() : options.password
  const password = checked(given ?? randomPassword())

  await asSystem(config, async (ctx) => {
    const role_id = await roleId(ctx, options.role)
    const body = { name, email: options.email, role_id, password, password_confirmation: password }
    const { data } = await handlers.createUser(ctx, { params: {}, query: {} as never, body })
    const generated = given === undefined ? password : null
    report(options, { id: data.id, email: data.email, name: data.name, password: generated }, [
      `User ${data.id} created: ${data.name} <${data.email}>`,
      ...(generated === null ? [] : [`Password: ${generated}   (shown only now)`]),
    ])
  })
}

/** Prints one line for each user. Tabs separate the fields. */
export const listUsersCommand = (config: Config, options: ReportOptions = {}): Promise<void> =>
  asSystem(config, async ({ db }) => {
    const rows = await db
      .selectFrom('users')
      .innerJoin('roles', 'roles.id', 'users.role_id')
      .select(['users.id', 'users.email', 'users.name', 'users.is_active', 'users.password_hash', 'roles.name as role'])
      .orderBy('users.id')
      .execute()
    const users = rows.map(({ id, email, name, role, is_active, password_hash: hash }) => {
      const state = is_active !== 1 ? 'disabled' : hash === null ? 'invited' : 'active'
      return { id, email, name, role, state }
    })
    report(
      options,
      { users },
      users.map(({ id, email, name, role, state }) => [id, email, oneLine(name), oneLine(role), state].join('\t')),
    )
  })

/**
 * Sets the password of a user. The password is not an argument, because every user of the machine
 * can read a command line.
 */
export async function setPasswordCommand(
  config: Config,
  email: string,
  { generate = false, ...options }: { generate?: boolean } & ReportOptions,
): Promise<void> {
  const given = generate ? undefined : process.stdin.isTTY ? await askPassword() : await readPassword()
  const password = checked(given ?? randomPassword())
  await asSystem(config, async (ctx) => {
    const user = await userOf(ctx, email)
    await update(ctx, user.id, { password, password_confirmation: password })
    console.error(`The password of ${user.email} is set. All tokens and sessions of the user have ended.`)
    // Standard output gets only the password, so that a script can read it.
    const generated = given === undefined ? password : null
    report(options, { email: user.email, password: generated }, generated === null ? [] : [generated])
    if (user.is_active !== 1) console.error('The user is disabled. To enable sign-in, run: accord user enable')
  })
}

export const disableUserCommand = (config: Config, email: string, options: ReportOptions = {}): Promise<void> =>
  switchUser(config, email, options, {
    is_active: false,
    done: 'is disabled. All tokens and sessions of the user have ended.',
    before: 'was already disabled.',
  })

export const enableUserCommand = (config: Config, email: string, options: ReportOptions = {}): Promise<void> =>
  switchUser(config, email, options, {
    is_active: true,
    done: 'is enabled and may sign in. Ended tokens stay ended.',
    before: 'was already enabled.',
  })

interface Switch {
  is_active: boolean
  done: string
  before: string
}

const switchUser = (
  config: Config,
  email: string,
  options: ReportOptions,
  { is_active, done, before }: Switch,
): Promise<void> =>
  asSystem(config, async (ctx) => {
    const user = await userOf(ctx, email)
    const is = (user.is_active === 1) === is_active
    if (!is) await update(ctx, user.id, { is_active })
    report(options, { email: user.email, state: is_active ? 'enabled' : 'disabled', changed: !is }, [
      `${user.email} ${is ? before : done}`,
    ])
  })

const update = (ctx: Context, id: number, body: Parameters<typeof handlers.updateUser>[1]['body']) =>
  handlers.updateUser(ctx, { params: { id }, query: {} as never, body })

async function userOf({ db }: Context, email: string): Promise<{ id: number; email: string; is_active: number }> {
  const user = await db
    .selectFrom('users')
    .select(['id', 'email', 'is_active'])
    .where('email_key', '=', caseFold(email.trim()))
    .executeTakeFirst()
  if (!user) throw new CommandError(`No user has the e-mail address ${email}. To see all users, run: accord user list`)
  return user
}

function checked(password: string): string {
  if (password.length < 8 || password.length > 128)
    throw new CommandError('The password must have 8 to 128 characters.')
  return password
}

async function roleId(ctx: Context, role: string): Promise<number> {
  const roles = await ctx.db.selectFrom('roles').select(['id', 'name']).orderBy('id').execute()
  const found = roles.find(({ id, name }) => String(id) === role || name.toLowerCase() === role.trim().toLowerCase())
  if (!found)
    throw new CommandError(`There is no role "${role}". The roles are: ${roles.map(({ name }) => name).join(', ')}.`)
  return found.id
}
