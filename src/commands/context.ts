// The context of a command: the same composition as the server, without listening, acting as the system. Rules, listeners
// and the event log therefore hold for the command line as well.
import { randomUUID } from 'node:crypto'
import { pending } from '../../db/migrate.ts'
import { storeExists } from '../../db/open.ts'
import { buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { openData, publishedOf, secretOf } from '../data.ts'
import { loadExtensions } from '../extensions.ts'
import type { Context } from '../kernel/context.ts'
import { generatedContract } from '../package.ts'
import { CommandError } from './fail.ts'

/** Runs `work` on an installed data folder as the system: no user, every permission. */
export async function asSystem<T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> {
  if (!storeExists(config.databaseUrl))
    throw new CommandError(`There is no database at ${config.databaseUrl}. Run: accord install`)
  const store = openData(config)
  try {
    if ((await pending(store)).length > 0)
      throw new CommandError('The database is older than this program. Run: accord migrate')
    const logLevel = config.logLevel === 'info' ? 'error' : config.logLevel
    const { http, services } = await buildApp({
      config: { ...config, logLevel },
      store,
      secret: secretOf(config).secret,
      contract: generatedContract(),
      published: publishedOf(config),
      extensions: await loadExtensions(config.listeners),
    })
    const base = config.appUrl ?? `http://localhost:${config.port}`
    try {
      return await work({
        services,
        db: store.db,
        operation: null,
        user: null,
        token: null,
        origin: 'cli',
        requestId: randomUUID(),
        ip: null,
        dryRun: false,
        ifMatch: null,
        headers: {},
        base,
        calledAt: base,
        path: '',
        query: '',
        time: services.clock.now(),
        unit: null,
        beforeCommit: null,
      })
    } finally {
      await http.close()
    }
  } finally {
    await store.close()
  }
}
