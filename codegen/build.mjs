// `npm run build` compiles the sources into dist and bundles them. `npm start` passes --if-changed:
// the build is then skipped if dist was built from the same sources.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const inputs = ['src', 'db', 'codegen', 'package-lock.json', 'tsconfig.json']
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

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

const sources = hashSources()
const isBuilt =
  existsSync(join('dist', 'src', 'cli.js')) && existsSync(stamp) && readFileSync(stamp, 'utf8') === sources
if (!isBuilt || !process.argv.includes('--if-changed')) {
  console.log('Building…')
  // Removes the stamp before the build. An interrupted build then leaves no stamp, so the next
  // build is not skipped.
  rmSync(stamp, { force: true })
  run(join('node_modules', 'typescript-native', 'bin', 'tsc'), '-p', 'tsconfig.json')
  run(join('codegen', 'pack.mjs'), 'dist')
  writeFileSync(stamp, sources)
}
