// Waits for what a server does after a reply, such as noting the last use of a token.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { TestServer } from './app.ts'
import { isHostile } from './hostile.ts'

/** More than the pause before a transaction runs again, during which no connection is busy. */
const pauseMs = 100

/** Turns of the event loop without a busy connection after which nothing is under way. */
const quietTurns = 3

export async function settle({ store }: TestServer): Promise<void> {
  for (let quiet = 0; quiet < quietTurns; quiet++) {
    await (isHostile ? sleep(pauseMs) : nextTurn())
    const isBusy = store.connections().some(({ open, idle, waiting }) => open > idle || waiting > 0)
    if (isBusy) quiet = -1
  }
}
