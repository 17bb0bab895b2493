// Waits for what a server does after a reply, such as noting the last use of a token.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { TestServer } from './app.ts'

/** Turns of the event loop without a busy connection after which nothing is under way. */
const quietTurns = 3

export async function settle({ store }: TestServer): Promise<void> {
  for (let quiet = 0; quiet < quietTurns; quiet++) {
    await nextTurn()
    const isBusy = store.connections().some(({ open, idle, waiting }) => open > idle || waiting > 0)
    if (isBusy) quiet = -1
  }
}
