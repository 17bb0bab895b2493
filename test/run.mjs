// `npm test`: runs every check, on SQLite and, for the tests with a database, also on PostgreSQL. A
// failure does not stop the rest. A CI log may keep only its end, which therefore names the failed
// tests with their messages, the tests that passed only with a retry (they count as passed), and
// the programs whose tests were skipped, because they are missing. The last line is always `N
// passed, N failed`, or `N passed, N failed, N skipped`; a failed check counts as a failed test.
import '../src/node-version.mjs'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'accord-results-'))

/** Runs a tool of node_modules; returns null, or the failure with advice. */
function run(title, tool, args, advice, variables = {}) {
  console.log(`\n── ${title}`)
  const bin = join(root, 'node_modules', '.bin', tool)
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', ...variables }
  const { status, error } = spawnSync(bin, args, {
    cwd: root,
    env,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  return status === 0 ? null : `${title}: ${error ? error.message : advice}`
}

/** Runs the tests on an engine; returns the counts and the findings. */
function runTests(title, engine, args, variables = {}) {
  const results = join(scratch, `${engine}.json`)
  const vitest = ['run', '--config', 'test/vitest.config.ts', '--reporter=default', '--reporter=json', ...args]
  const failure = run(title, 'vitest', [...vitest, `--outputFile.json=${results}`], 'The report above says which.', {
    ACCORD_TEST_ENGINE: engine,
    ...variables,
  })
  const counts = countTests(results)
  // If a file does not load or the runner crashes, there is no failed test to count.
  return { ...counts, broken: failure !== null && counts.failed === 0 ? [failure] : [] }
}

const checks = [
  run('format and lint', 'biome', ['check', '--error-on-warnings', '.'], 'Run: npm run format:write'),
  run('types', '../typescript-native/bin/tsc', ['-p', 'test/tsconfig.json'], 'The compiler says where.'),
  run('drift', 'tsx', ['src/cli.ts', 'regenerate', '--check'], 'Run: npm run regenerate'),
  run('contract', 'redocly', ['lint'], 'The linter says where.'),
]
const { register } = await import('tsx/esm/api')
register()
const { findPostgres, isComplete } = await import('./support/programs.ts')
const hasPostgres = findPostgres() !== null || isComplete || process.env.ACCORD_TEST_POSTGRES_URL !== undefined
const fired = join(scratch, 'fired.txt')
const suites = [
  runTests('tests', 'sqlite', [], { ACCORD_TEST_FIRED: fired }),
  ...(hasPostgres ? [runTests('tests on PostgreSQL', 'postgres', ['--project', 'postgres'])] : []),
]
const { compareFired } = await import('./support/fired-events.ts')
const { missing: unfired, stale } = compareFired(fired)
for (const line of stale) console.log(`\nA test sees it by now; remove it from test/contract/unfired.txt: ${line}`)
rmSync(scratch, { recursive: true, force: true })
const silent = unfired.map((line) => `No test sees an event that x-events declares: ${line}. Write a test.`)
const broken = [...checks, ...silent, ...suites.flatMap((suite) => suite.broken)].filter((finding) => finding !== null)
for (const finding of broken) console.log(`\nFAILED ${finding}`)
for (const failure of suites.flatMap(({ failures }) => failures)) console.log(`\nFAILED ${failure}`)
for (const test of suites.flatMap(({ flaky }) => flaky)) console.log(`\nFLAKY, passed with its retry: ${test}`)
const skipped = suites.flatMap((suite) => suite.skipped)
const missing = new Set(skipped.flatMap(({ programs }) => programs))
for (const program of [...missing].sort()) {
  const count = skipped.filter(({ programs }) => programs.includes(program)).length
  console.log(`\nSKIPPED ${count} ${count === 1 ? 'test' : 'tests'}, because ${program} is missing`)
}
if (!hasPostgres) console.log('\nSKIPPED the tests on PostgreSQL, because postgres is missing')
const sum = (key) => suites.reduce((total, suite) => total + suite[key], 0)
const failed = sum('failed') + broken.length
process.exitCode = failed > 0 ? 1 : 0
console.log(`\n${sum('passed')} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`)

/** Returns the numbers of tests, the failures with file and message, and the retried tests. */
function countTests(results) {
  try {
    const report = JSON.parse(readFileSync(results, 'utf8'))
    const tests = report.testResults.flatMap((file) =>
      file.assertionResults.map((test) => ({ ...test, file: relative(root, file.name) })),
    )
    const failures = tests.filter(({ status }) => status === 'failed')
    const emptyFailures = report.testResults.filter(
      (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
    )
    // The name of a test that needs a missing program says so (support/programs.ts). Other skipped
    // tests are for another engine or another extent.
    const skipped = tests.flatMap(({ status, fullName }) => {
      const programs = status === 'passed' ? undefined : /\[missing: ([^\]]+)\]/.exec(fullName)?.[1]
      return programs === undefined ? [] : [{ programs: programs.split(', ') }]
    })
    // A passed test has failure messages only if an earlier attempt failed.
    const flaky = tests.filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0)
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + emptyFailures.length,
      failures: [
        ...failures.map(({ file, fullName, failureMessages }) => `${file} ${fullName}\n${excerpt(failureMessages)}`),
        ...emptyFailures.map(({ name, message }) => `${relative(root, name)}\n${excerpt([message])}`),
      ],
      skipped,
      flaky: flaky.map(({ file, fullName, failureMessages }) => `${file} ${fullName}\n${excerpt(failureMessages)}`),
    }
  } catch {
    return { passed: 0, failed: 0, failures: [], flaky: [], skipped: [] }
  }
}

/** Returns the first lines of the last message. The report above has the whole message. */
function excerpt(messages) {
  const lines = (messages.at(-1) ?? '').split('\n').slice(0, 12)
  return lines.map((line) => `  ${line.slice(0, 300)}`).join('\n')
}
