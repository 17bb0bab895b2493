// Two servers over one PostgreSQL database, as two processes are: each has its own connections,
// caches, worker and emitter.
import { openStore, type PostgresOptions, type Store } from '../../db/store.ts'
import { seededImage, startServer, type TestServer } from './app.ts'
import { openImage } from './engine.ts'

export interface TwoServers {
  one: TestServer
  two: TestServer
  /** A third store over the same database, for what no server does. */
  store: Store
  close(): Promise<void>
}

/** `through` returns the URL that the servers use for the database; by default its own. */
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
