// How the tests run: from the root of the repository, in threads. A thread keeps what it has loaded, the seeded database among it, for
// its next file; files that replace a module are on their own. Tests that measure time or memory run last, one file at a time, with
// one retry. `npm run check` names the projects it runs: `--exclude` does not reach a project that has exclusions of its own.
import { defineConfig } from 'vitest/config'

const common = {
  pool: 'threads' as const,
  // More than what is waited for below, so that a test which waits in vain says for what; and ten times what all but a few tests take
  // where nothing else runs. Those few say their own limit.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  restoreMocks: true,
  // What is waited for comes late on a machine that has much else to do; see support/until.ts.
  expect: { poll: { timeout: 20_000 } },
}
const replacing = [
  'test/resources/authentication.passwords.test.ts',
  'test/kernel/files/sync.test.ts',
  // It counts statements that the files before it may have compiled already.
  'test/resources/data-transfer.cost.test.ts',
]
const measuring = 'test/timing/**/*.test.ts'
/** From a shell or a browser: what `npm run check` leaves out. */
const outside = ['test/browser/**/*.test.ts', 'test/flows/**/*.test.ts']

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Of few cores none is left over: the runner itself does next to nothing.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          ...common,
          name: 'inside',
          include: ['test/**/*.test.ts'],
          exclude: [...replacing, ...outside, measuring],
          isolate: false,
        },
      },
      { test: { ...common, name: 'outside', include: outside, isolate: false } },
      { test: { ...common, name: 'replacing', include: replacing } },
      {
        test: {
          ...common,
          name: 'timing',
          include: [measuring],
          isolate: false,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          retry: 1,
        },
      },
    ],
  },
})
