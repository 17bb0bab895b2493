// Waiting for what comes about by itself, on a machine that may have much else to do: however long that takes there, it is no failure
// of ours, so the limit is only there for what never comes. `expect.poll` has the same one (vitest.config.ts).
import { vi } from 'vitest'

/** Waits until it is so. */
export const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  await vi.waitUntil(isSo, { timeout: 20_000, interval: 10 })
}
