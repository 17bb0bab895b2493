// How the tests run: from the root of the repository, in threads, with time for the first compilation.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'threads',
    // Of few cores none is left over: the runner itself does next to nothing.
    maxWorkers: '100%',
    testTimeout: 60_000,
    hookTimeout: 180_000,
    restoreMocks: true,
  },
})
