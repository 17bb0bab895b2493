// Runs a command in the composition of the server, without listening, as the system user. Rules,
// listeners and the event log therefore apply to the command line too.
import { type App, buildApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { loadExtensions } from '../extensions.ts'
import { openPublished } from '../installation/data-folder.ts'
import { generatedContract } from '../installation/package-info.ts'
import { ensureSecret } from '../installation/secret.ts'
import { type Context, systemContext } from '../kernel/context.ts'
import { withInstalled } from './installed-store.ts'

/** Runs `work` with a complete app on an installed data folder. Background work is not started. */
export function withApp<T>(config: Config, work: (app: App) => Promise<T>): Promise<T> {
  return withInstalled(config, async (store) => {
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
 * As `withApp`, with the context of the system: no user, every permission. By default it logs
 * errors only.
 */
export const asSystem = <T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> =>
  withApp({ ...config, logLevel: config.logLevel === 'info' ? 'error' : config.logLevel }, ({ services }) =>
    work(systemContext(services, 'cli')),
  )
