// `accord user create`: the createUser operation, called by the system.
import type { Config } from '../config.ts'
import type { Context } from '../kernel/context.ts'
import { handlers } from '../operations.ts'
import { asSystem } from './context.ts'
import { CommandError } from './fail.ts'
import { randomPassword } from './install.ts'

interface Options {
  name: string
  email: string
  role: string
  password?: string
}

export async function createUserCommand(config: Config, options: Options): Promise<void> {
  // The contract checks these for callers of the API; nobody else does here.
  const name = options.name.trim()
  if (name === '' || name.length > 100) throw new CommandError('--name must have 1 to 100 characters.')
  if (!/^[^\s@]+@[^\s@]+$/.test(options.email) || options.email.length > 254) {
    throw new CommandError(`--email must be an e-mail address, not "${options.email}".`)
  }
  const password = options.password ?? randomPassword()
  if (password.length < 8 || password.length > 128) throw new CommandError('--password must have 8 to 128 characters.')

  await asSystem(config, async (ctx) => {
    const role_id = await roleId(ctx, options.role)
    const body = { name, email: options.email, role_id, password, password_confirmation: password }
    const { data } = await handlers.createUser(ctx, { params: {}, query: {} as never, body })
    console.log(`User ${data.id} created: ${data.name} <${data.email}>`)
    if (options.password === undefined) console.log(`Password: ${password}   (shown only now)`)
  })
}

async function roleId(ctx: Context, role: string): Promise<number> {
  const roles = await ctx.db.selectFrom('roles').select(['id', 'name']).orderBy('id').execute()
  const found = roles.find(({ id, name }) => String(id) === role || name.toLowerCase() === role.trim().toLowerCase())
  if (!found)
    throw new CommandError(`There is no role "${role}". There are: ${roles.map(({ name }) => name).join(', ')}.`)
  return found.id
}
