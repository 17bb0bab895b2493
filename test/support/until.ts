// Waiting for something that happens in the background. A busy machine may take long, which is not
// a failure, so the limit only catches what never happens. `expect.poll` has the same limit
// (vitest.config.ts).
import { vi } from 'vitest'

/** Waits until the condition holds. */
export const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  await vi.waitUntil(isSo, { timeout: 15_000, interval: 10 })
}
