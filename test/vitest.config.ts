// Runs the tests from the root of the repository, in threads. A thread keeps its loaded modules,
// the seeded database included, for its next file; files that replace a module run alone. Tests
// that measure time or memory run last, one file at a time, with one retry. `npm run check` names
// its projects, because `--exclude` does not reach a project with exclusions of its own.
import { defineConfig } from 'vitest/config'

const common = {
  pool: 'threads' as const,
  // Longer than the timeout of `expect.poll`, so that a failed test shows what it waited for.
  testTimeout: 60_000,
  // A hook may create a whole world of records.
  hookTimeout: 60_000,
  restoreMocks: true,
  // A long timeout, because a busy machine is slow (support/until.ts).
  expect: { poll: { timeout: 15_000 } },
}
const replacing = [
  'test/resources/authentication.passwords.test.ts',
  'test/kernel/files/sync.test.ts',
  // Lowers the limit of records that a question may read.
  'test/resources/leads.costly.test.ts',
  // Counts compiled statements, which earlier files may already have compiled.
  'test/resources/data-transfer.cost.test.ts',
  // Reads the contract of the last release in place of today's.
  'test/contract/released.test.ts',
]
const measuring = 'test/timing/**/*.test.ts'
/** Tests that start processes and browsers, which are slow. `npm run check` omits them. */
const outside = ['browser', 'flows', 'faults', 'bench'].map((folder) => `test/${folder}/**/*.test.ts`)

/**
 * Files that test only SQLite. In other files, single tests are skipped with
 * `it.runIf(!isPostgres)`.
 */
const sqliteOnly = [
  'test/jobs/disk.test.ts',
  'test/kernel/files/sync.test.ts',
  'test/kernel/query/caller-query.test.ts',
  'test/kernel/resource/exports.log.test.ts',
  'test/kernel/runtime/unavailable.test.ts',
  'test/resources/attributes.contract.test.ts',
  'test/resources/authentication.passwords.test.ts',
  'test/resources/data-transfer.cost.test.ts',
  'test/resources/leads.costly.test.ts',
  'test/resources/leads.totals.test.ts',
  'test/resources/search.rebuild.test.ts',
]

/**
 * The tests that `npm test` runs on PostgreSQL. With ACCORD_TEST_FULL, all tests that use the
 * database.
 */
const onPostgres =
  process.env.ACCORD_TEST_FULL === '1'
    ? [
        'test/{differential,http/compat-v1,jobs,kernel,postgres,properties,resources}/**/*.test.ts',
        'test/flows/month.test.ts',
      ]
    : [
        'test/{differential,jobs,postgres}/**/*.test.ts',
        'test/flows/month.test.ts',
        'test/properties/unstorable-texts.test.ts',
        'test/http/compat-v1/routes.test.ts',
        'test/kernel/query/long-lists.test.ts',
        'test/kernel/history/stored-references.test.ts',
        `test/resources/{${[
          ...[
            'activities',
            'attributes',
            'data-transfer.analysis',
            'data-transfer.cells',
            'data-transfer.reports',
            'data-transfer.runs',
            'files.bucket',
            'leads',
            'locations',
            'marketing',
            'marketing.audience',
          ],
          ...[
            'organizations',
            'persons',
            'pipelines',
            'products',
            'quotes',
            'reports',
            'roles',
            'search.forms',
            'search.languages',
            'sources',
            'tags',
            'types',
          ],
          ...['warehouses', 'web-forms', 'webhooks', 'workflows.evaluate'],
        ]}}.test.ts`,
      ]

/**
 * After a conflict of transactions, one of them is retried, and its `.before` events are fired
 * twice. Tests that expect exact events are therefore retried once, which is reported.
 */
const postgres = {
  test: {
    ...common,
    name: 'postgres',
    include: onPostgres,
    exclude: sqliteOnly,
    isolate: false,
    testTimeout: 60_000,
    retry: 1,
  },
}

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    globalSetup: 'test/support/global-setup.ts',
    // The runner itself needs little CPU time, so every core gets a worker.
    maxWorkers: '100%',
    projects:
      process.env.ACCORD_TEST_ENGINE === 'postgres'
        ? [postgres]
        : [
            {
              test: {
                ...common,
                name: 'inside',
                include: ['test/**/*.test.ts'],
                exclude: [...replacing, ...outside, measuring, 'test/{differential,postgres}/**'],
                isolate: false,
              },
            },
            {
              test: {
                ...common,
                name: 'outside',
                include: outside,
                isolate: false,
                testTimeout: 60_000,
                // Processes and browsers compete for the cores, so these tests are retried once.
                // `npm test` lists retried tests.
                retry: 1,
                expect: { poll: { timeout: 20_000 } },
              },
            },
            { test: { ...common, name: 'replacing', include: replacing } },
            {
              test: {
                ...common,
                name: 'timing',
                include: [measuring],
                testTimeout: 60_000,
                isolate: false,
                fileParallelism: false,
                sequence: { groupOrder: 1 },
                retry: 1,
              },
            },
          ],
  },
})
