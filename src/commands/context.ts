// The context of a command: the same composition as the server, without listening, acting as the system. Rules, listeners
// and the event log therefore hold for the command line as well.
import { buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { publishedOf, secretOf } from '../data.ts'
import { loadExtensions } from '../extensions.ts'
import { type Context, systemContext } from '../kernel/context.ts'
import { generatedContract } from '../package.ts'
import { withInstalled } from './installed.ts'

/** Runs `work` on an installed data folder as the system: no user, every permission. */
export function asSystem<T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> {
  return withInstalled(config, async (store) => {
    const logLevel = config.logLevel === 'info' ? 'error' : config.logLevel
    const { http, services } = await buildApp({
      config: { ...config, logLevel },
      store,
      secret: secretOf(config).secret,
      contract: generatedContract(),
      published: publishedOf(config),
      extensions: await loadExtensions(config.listeners),
    })
    try {
      return await work(systemContext(services, 'cli'))
    } finally {
      await http.close()
    }
  })
}
