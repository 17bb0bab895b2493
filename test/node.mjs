// `npm run test:node [versions] [test files]`: runs the tests of `npm run check` on Node 20, 22 and
// 24. npm fetches each Node into a temporary folder, where they run on a copy of the sources.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const isVersion = (argument) => /^\d+(\.\d+)*$/.test(argument)
const args = process.argv.slice(2)
const versions = args.some(isVersion) ? args.filter(isVersion) : ['20', '22', '24']
const tests = args.filter((argument) => !isVersion(argument))
const platform = process.platform === 'win32' ? 'win' : process.platform

/** Installs Node from npm. The package contains the binary and the headers for node-gyp. */
function fetchNode(version, folder) {
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{}')
  run('npm', ['install', '--no-audit', '--no-fund', `node-${platform}-${process.arch}@${version}`], folder)
  return join(folder, 'node_modules', `node-${platform}-${process.arch}`)
}

/** Copies the sources. The packages are symlinks, but for the folder that Node 20 fills itself. */
function copyProject(folder) {
  const { stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const generated = ['src/contract/document.gen.json', 'src/contract/schema.gen.ts']
  for (const file of [...stdout.toString().split('\0').filter(Boolean), ...generated])
    cpSync(join(root, file), join(folder, file))
  const packages = join(root, 'node_modules')
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync(packages))
    if (!name.startsWith('.') || name === '.bin') symlinkSync(join(packages, name), join(folder, 'node_modules', name))
}

function run(program, args, cwd, env = process.env) {
  const { status } = spawnSync(program, args, { cwd, env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}.`)
}

function testOn(version) {
  const folder = mkdtempSync(join(tmpdir(), `accord-node-${version}-`))
  try {
    const node = fetchNode(version, join(folder, 'node'))
    const project = join(folder, 'accord')
    copyProject(project)
    const env = {
      ...process.env,
      PATH: [join(node, 'bin'), dirname(process.execPath), process.env.PATH].join(delimiter),
      npm_config_nodedir: node,
    }
    const program = join(node, 'bin', 'node')
    run(program, ['db/sqlite/node-20/install.mjs'], project, env)
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts']
    run(program, [...vitest, '--project', 'inside', '--project', 'replacing', ...tests], project, env)
    return true
  } catch (error) {
    console.error(error.message)
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const results = versions.map((version) => [version, testOn(version)])
for (const [version, hasPassed] of results) console.log(`Node ${version}: ${hasPassed ? 'passed' : 'FAILED'}`)
process.exitCode = results.every(([, hasPassed]) => hasPassed) ? 0 : 1
