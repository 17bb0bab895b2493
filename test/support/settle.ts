// Waits for work that a server does after a reply, such as storing the last use of a token.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { TestServer } from './app.ts'
import { isHostile } from './hostile.ts'

/**
 * Longer than the pause before a transaction is retried, because no connection is busy during the
 * pause.
 */
const pauseMs = 100

/** After this many turns of the event loop without a busy connection, no work is left. */
const quietTurns = 3

export async function settle({ store }: TestServer): Promise<void> {
  for (let quiet = 0; quiet < quietTurns; quiet++) {
    await (isHostile ? sleep(pauseMs) : nextTurn())
    const isBusy = store.connections().some(({ open, idle, waiting }) => open > idle || waiting > 0)
    if (isBusy) quiet = -1
  }
}
