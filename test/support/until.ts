// Waiting for something that happens in the background. A busy machine may take long, which is not
// a failure, so the limit only catches what never happens. `expect.poll` has the same limit
// (vitest.config.ts).
import { vi } from 'vitest'

/** Waits until the condition holds, in hooks too. */
export const until = async (isSo: () => boolean | Promise<boolean>, timeout = 15_000): Promise<void> => {
  await vi.waitUntil(isSo, { timeout, interval: 10 })
}
