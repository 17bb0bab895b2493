// `npm run build` generates the files that follow from openapi.yaml, and bundles the sources into
// dist; `npm run types` checks them. `npm start` passes --if-changed: the build is then skipped if
// dist was built from the same sources. `npm pack` passes --clean, so that the package has no file
// of an earlier build.
import '../src/node-version.mjs'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const inputs = ['openapi.yaml', 'src', 'db', 'codegen', 'package-lock.json', 'package.json']
const stamp = join('dist', '.sources')

/**
 * Returns a hash over the names and bytes of all input files. File times do not count, because a
 * checkout or a copy changes times only.
 */
function hashSources() {
  const hash = createHash('sha256')
  for (const input of inputs.filter((path) => existsSync(path))) {
    const names = statSync(input).isDirectory() ? readdirSync(input, { recursive: true }).sort() : ['']
    for (const file of names.map((name) => join(input, name)).filter((path) => statSync(path).isFile()))
      hash.update(`${file}\n`).update(readFileSync(file))
  }
  return hash.digest('hex')
}

/** Returns why dist must be built; null when it is up to date. */
function reasonToBuild(sources) {
  if (!process.argv.includes('--if-changed')) return 'as asked'
  if (!existsSync(join('dist', 'src', 'cli.js'))) return 'because there is no build yet'
  if (!existsSync(stamp)) return 'because the last build did not end'
  return readFileSync(stamp, 'utf8') === sources ? null : 'because the sources have changed'
}

function runScript(...args) {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

if (!existsSync(join('node_modules', 'tsx'))) {
  console.error('The packages are not installed. Run: npm ci')
  process.exit(1)
}
const sources = hashSources()
const reason = reasonToBuild(sources)
if (reason === null) console.log('The build in dist is up to date; starting it.')
else {
  console.log(`Building dist, ${reason} (a few seconds).`)
  if (process.argv.includes('--clean')) rmSync('dist', { recursive: true, force: true })
  // Removes the stamp before the build. An interrupted build then leaves no stamp, so the next
  // build is not skipped.
  rmSync(stamp, { force: true })
  runScript('--import', 'tsx', join('codegen', 'regenerate.ts'))
  runScript(join('codegen', 'pack.mjs'), 'dist')
  // Hashes again, because regenerate may have written sources.
  writeFileSync(stamp, hashSources())
}
