// Starts two servers on one PostgreSQL database, each with its own connections, caches, worker and
// emitter, like two processes.
import { openStore, type PostgresOptions, type Store } from '../../db/store.ts'
import { seededImage, startServer, type TestServer } from './app.ts'
import { openImage } from './engine.ts'

export interface TwoServers {
  one: TestServer
  two: TestServer
  /** A third store on the same database, for direct access. */
  store: Store
  close(): Promise<void>
}

/** `through` can change the database URL that the servers use, for example to that of a pooler. */
export async function startTwoServers(
  options: PostgresOptions = {},
  through: (url: string) => string = (url) => url,
): Promise<TwoServers> {
  const store = await openImage(await seededImage())
  const open = () => openStore(through(store.url), { postgres: { max: 6, ...options } })
  const one = await startServer({ open })
  const two = await startServer({ open })
  return {
    one,
    two,
    store,
    close: async () => {
      await one.close()
      await two.close()
      await store.close()
    },
  }
}
