// `npm test`: every check of this repository, in the order in which a failure is cheapest to read.
// The tests run on SQLite, and those that use the database also on PostgreSQL.
// A failure does not stop the rest. The last line is always `N passed, N failed`: tests and failed
// checks. A test that passed with its retry (test/timing, processes and browsers, PostgreSQL)
// counts as passed, and its name is printed before that line.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
function runTests(title, engine, args) {
  const results = join(scratch, `${engine}.json`)
  const vitest = ['run', '--config', 'test/vitest.config.ts', '--reporter=default', '--reporter=json', ...args]
  const failure = run(title, 'vitest', [...vitest, `--outputFile.json=${results}`], 'The report above says which.', {
    ACCORD_TEST_ENGINE: engine,
  })
  const counts = countTests(results)
  // A file that does not load, or a runner that dies, has no failed test to count.
  return { ...counts, broken: failure !== null && counts.failed === 0 ? [failure] : [] }
}

const checks = [
  run('format and lint', 'biome', ['check', '--error-on-warnings', '.'], 'Run: npm run format:write'),
  run('types', '../typescript-native/bin/tsc', ['-p', 'test/tsconfig.json'], 'The compiler says where.'),
  run('drift', 'tsx', ['src/cli.ts', 'regenerate', '--check'], 'Run: npm run regenerate'),
  run('contract', 'redocly', ['lint'], 'The linter says where.'),
]
const suites = [runTests('tests', 'sqlite', []), runTests('tests on PostgreSQL', 'postgres', ['--project', 'postgres'])]
rmSync(scratch, { recursive: true, force: true })
const broken = [...checks, ...suites.flatMap((suite) => suite.broken)].filter((finding) => finding !== null)
for (const finding of broken) console.log(`\nFAILED ${finding}`)
for (const name of suites.flatMap(({ flaky }) => flaky)) console.log(`\nFLAKY ${name}: it passed with its retry.`)
const sum = (key) => suites.reduce((total, suite) => total + suite[key], 0)
const failures = sum('failed') + broken.length
process.exitCode = failures > 0 ? 1 : 0
console.log(`\n${sum('passed')} passed, ${failures} failed`)

function countTests(results) {
  try {
    const report = JSON.parse(readFileSync(results, 'utf8'))
    const emptyFailures = report.testResults.filter(
      (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
    ).length
    // A passed test has failure messages only when an earlier try failed.
    const flaky = report.testResults.flatMap(({ assertionResults }) =>
      assertionResults.filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0),
    )
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + emptyFailures,
      flaky: flaky.map(({ fullName }) => fullName),
    }
  } catch {
    return { passed: 0, failed: 0, flaky: [] }
  }
}
