// `node codegen/client/pack.mjs <folder>` builds the package @accord-crm/client: JavaScript, types,
// and the types of the contract. `npm publish <folder>` publishes it.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'

register()
const { renderSchema } = await import('../schema.ts')
const { readContract } = await import('../read.ts')

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the output folder: node codegen/client/pack.mjs dist-client')
const root = fileURLToPath(new URL('../..', import.meta.url))
const here = join(root, 'codegen/client')
const out = resolve(folder)
console.log(`Building @accord-crm/client in ${out}. This takes up to half a minute.`)

// Copies the sources and the types of the contract into one folder, as in the package. The folder
// is inside the repository, so that imports of packages resolve.
const staging = mkdtempSync(join(here, '.staging-'))
try {
  for (const name of readdirSync(here).filter((each) => each.endsWith('.ts'))) {
    const text = readFileSync(join(here, name), 'utf8')
    writeFileSync(join(staging, name), text.replaceAll('../../src/contract/schema.gen.ts', './schema.ts'))
  }
  writeFileSync(join(staging, 'schema.ts'), await renderSchema(readContract(root), 'client'))
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const options = [
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--strict',
    '--skipLibCheck',
    '--declaration',
    '--ignoreConfig',
  ]
  execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/typescript-native/bin/tsc'),
      ...options,
      '--rewriteRelativeImportExtensions',
      ...['--rootDir', staging, '--outDir', out, join(staging, 'index.ts')],
    ],
    { stdio: 'inherit', cwd: root },
  )
} finally {
  rmSync(staging, { recursive: true, force: true })
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
writeFileSync(join(out, 'package.json'), `${JSON.stringify({ ...manifest, version }, null, 2)}\n`)
for (const [from, name] of [
  [join(here, 'README.md'), 'README.md'],
  [join(root, 'LICENSE'), 'LICENSE'],
])
  cpSync(from, join(out, name))
console.log(`Built. In the folder of your program, run: npm install $(npm pack --silent ${out})`)
