// Runs a command inside the server application, as the system user and without opening a port. So
// rules, listeners and the event log also apply to commands.
import { caseFold } from '../../db/schema/case-folding.ts'
import { type App, buildApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { loadExtensions } from '../extensions.ts'
import { openPublished } from '../installation/data-folder.ts'
import { generatedContract } from '../installation/package-info.ts'
import { ensureSecret } from '../installation/secret.ts'
import { signedInAs } from '../kernel/auth/tokens.ts'
import { type Context, systemContext } from '../kernel/context.ts'
import { CommandError } from './command-error.ts'
import { withInstalled } from './installed-store.ts'

/** Runs `work` with the application on an installed data folder. Background work is not started. */
export function withApp<T>(config: Config, work: (app: App) => Promise<T>): Promise<T> {
  return withInstalled(config, async (store) => {
    await store.synchronizeClock()
    const app = await buildApp({
      config,
      store,
      secret: (await ensureSecret(config, store)).secret,
      contract: generatedContract(),
      published: openPublished(config),
      extensions: await loadExtensions(config.listeners),
    })
    try {
      return await work(app)
    } finally {
      await app.http.close()
    }
  })
}

/**
 * Runs `work` with the context of the system, which has no user and all permissions. At the default
 * log level, only errors are logged.
 */
export const asSystem = <T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> =>
  withApp({ ...config, logLevel: config.logLevel === 'info' ? 'error' : config.logLevel }, ({ services }) =>
    work(systemContext(services, 'cli')),
  )

/**
 * Returns the user in whose name a command acts: the active user with the address, by default that
 * of the first administrator.
 */
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
