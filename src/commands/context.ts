// The context of a command: the same composition as the server, without listening, acting as the system. Rules, listeners
// and the event log therefore hold for the command line as well.
import { type App, buildApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { loadExtensions } from '../extensions.ts'
import { openPublished } from '../installation/data-folder.ts'
import { generatedContract } from '../installation/package-info.ts'
import { ensureSecret } from '../installation/secret.ts'
import { type Context, systemContext } from '../kernel/context.ts'
import { withInstalled } from './installed-store.ts'

/** Runs `work` with everything a server is made of, on an installed data folder; nothing listens, and nothing is started. */
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

/** The same as the system: no user, every permission. Only what fails is logged, unless more is asked for. */
export const asSystem = <T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> =>
  withApp({ ...config, logLevel: config.logLevel === 'info' ? 'error' : config.logLevel }, ({ services }) =>
    work(systemContext(services, 'cli')),
  )
