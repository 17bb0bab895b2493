// How the tests run: from the root of the repository, in threads, with time for the first compilation. A thread keeps what it has
// loaded, the seeded database among it, for its next file; files that replace a module are on their own.
import { defineConfig } from 'vitest/config'

const common = {
  pool: 'threads' as const,
  testTimeout: 120_000,
  hookTimeout: 180_000,
  restoreMocks: true,
  // What is waited for comes late on a machine that has much else to do; see support/until.ts.
  expect: { poll: { timeout: 20_000 } },
}
const replacing = [
  'test/resources/authentication.passwords.test.ts',
  'test/kernel/sync.test.ts',
  // It counts statements that the files before it may have compiled already.
  'test/resources/data-transfer.cost.test.ts',
]

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Of few cores none is left over: the runner itself does next to nothing.
    maxWorkers: '100%',
    projects: [
      { test: { ...common, name: 'all', include: ['test/**/*.test.ts'], exclude: replacing, isolate: false } },
      { test: { ...common, name: 'replacing', include: replacing } },
    ],
  },
})
