// Packs the program as `npm pack` does, but from the tracked files and the current sources.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { shrinkwrap } from '../../codegen/shrinkwrap.mjs'

export interface PackedProgram {
  /** The path of the tarball. */
  path: string
  size: number
  /** The paths of all files in the tarball. */
  files: string[]
}

const texts = ['*.md', '*.mjs', 'deploy', '.github', 'compose*.yaml', 'test/bench/cost.svg', 'db/sqlite/node-20']
const single = ['package.json', 'openapi.yaml', 'LICENSE']

/**
 * Makes the package in an empty folder. A lock file without hashes is for packages that were packed
 * again from node_modules.
 */
export function packProgram(source: string, { hashes = true } = {}): PackedProgram {
  mkdirSync(source, { recursive: true })
  const tracked = execFileSync('git', ['ls-files', '-z', '-o', '-c', '--exclude-standard', ...texts, ...single], {
    encoding: 'utf8',
  })
  for (const name of tracked.split('\0').filter(Boolean)) cpSync(name, join(source, name))
  execFileSync(process.execPath, [resolve('codegen/pack.mjs'), join(source, 'dist')])
  const locked = shrinkwrap(JSON.parse(readFileSync('package-lock.json', 'utf8')))
  if (!hashes) for (const entry of Object.values<{ integrity?: string }>(locked.packages)) delete entry.integrity
  writeFileSync(join(source, 'npm-shrinkwrap.json'), JSON.stringify(locked))
  writeFileSync(join(source, 'dist', '.sources'), '')
  const output = execFileSync('npm', ['pack', '--json', '--ignore-scripts'], { cwd: source, encoding: 'utf8' })
  const [packed] = JSON.parse(output) as [{ filename: string; size: number; files: { path: string }[] }]
  return { path: join(source, packed.filename), size: packed.size, files: packed.files.map(({ path }) => path) }
}
