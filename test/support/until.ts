// Waits for background work. The timeout is long, because a slow machine is not a failure.
// `expect.poll` has the same timeout (vitest.config.ts).
import { vi } from 'vitest'

/** Waits until the condition is true. Also works in hooks. */
export const until = async (isSo: () => boolean | Promise<boolean>, timeout = 15_000): Promise<void> => {
  await vi.waitUntil(isSo, { timeout, interval: 10 })
}
