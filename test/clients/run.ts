// `npm run test:clients` generates clients from the served contract with ten generators and
// compiles them with --strict. Also tests the collection with Newman and Bruno. `-- kubb orval`
// runs only these two. The first run installs all packages in node_modules/.cache, without install
// scripts.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install } from '../../src/commands/install/install.ts'
import { openData } from '../../src/installation/data-folder.ts'
import { startServer } from '../../src/server.ts'
import { adminPassword, testConfig } from '../support/app.ts'
import { tryBruno, tryNewman } from './collection.ts'

interface Generator {
  name: string
  command: readonly string[]
  /** The generated file. With `isPrinted`, the generator prints it to the standard output. */
  makes: string
  isPrinted?: boolean
}

const generators: readonly Generator[] = [
  {
    name: 'openapi-typescript',
    command: ['openapi-typescript', 'openapi.json', '-o', 'made/openapi-typescript.ts'],
    makes: 'openapi-typescript.ts',
  },
  {
    name: '@hey-api/openapi-ts',
    command: ['openapi-ts', '-i', 'openapi.json', '-o', 'made/hey-api', '-c', '@hey-api/client-fetch'],
    makes: 'hey-api/sdk.gen.ts',
  },
  {
    name: 'orval',
    command: ['orval', '--input', './openapi.json', '--output', './made/orval.ts', '--client', 'fetch'],
    makes: 'orval.ts',
  },
  { name: 'kubb', command: ['kubb', 'generate', '--config', 'kubb.config.mjs'], makes: 'kubb/index.ts' },
  {
    name: 'swagger-typescript-api',
    command: ['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', 'made', '-n', 'swagger.ts'],
    makes: 'swagger.ts',
  },
  {
    name: 'openapi-zod-client',
    command: ['openapi-zod-client', 'openapi.json', '-o', 'made/zod.ts'],
    makes: 'zod.ts',
  },
  {
    name: 'openapi-client-axios',
    command: ['typegen', 'openapi.json'],
    makes: 'axios.d.ts',
    isPrinted: true,
  },
  { name: 'oazapfts', command: ['oazapfts', 'openapi.json', 'made/oazapfts.ts'], makes: 'oazapfts.ts' },
  {
    name: 'openapi-codegen',
    command: ['openapi-codegen', 'gen', 'accord', '--config', 'openapi-codegen.config.mjs'],
    makes: 'openapi-codegen/accordComponents.ts',
  },
  {
    name: 'typed-openapi',
    command: ['typed-openapi', 'openapi.json', '--output', 'made/typed-openapi.ts'],
    makes: 'typed-openapi.ts',
  },
]

const here = fileURLToPath(new URL('.', import.meta.url))
const folder = join(here, '../../node_modules/.cache/accord-clients')
const run = (command: string, args: readonly string[]): string =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe', maxBuffer: 256 * 1024 * 1024 })

function prepare(): void {
  mkdirSync(folder, { recursive: true })
  const lock = 'package-lock.json'
  const isThere =
    existsSync(join(folder, 'node_modules')) &&
    existsSync(join(folder, lock)) &&
    readFileSync(join(folder, lock), 'utf8') === readFileSync(join(here, lock), 'utf8')
  for (const file of ['package.json', lock, 'kubb.config.mjs', 'openapi-codegen.config.mjs'])
    copyFileSync(join(here, file), join(folder, file))
  if (!isThere) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  rmSync(join(folder, 'made'), { recursive: true, force: true })
  mkdirSync(join(folder, 'made'))
}

/** Calls `use` with the URL of a new installation, and removes the installation afterward. */
async function withServer<T>(use: (url: string) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), 'accord-clients-'))
  const databaseUrl = `sqlite:${join(dataDir, 'accord.db')}`
  const config = testConfig({ host: '127.0.0.1', port: 0, dataDir, databaseUrl })
  const store = await openData(config)
  await install(config, store, { folder: dataDir })
  const server = await startServer(config, store)
  try {
    return await use(server.url)
  } finally {
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** An operation with an id in its path and a body. Some generators drop such operations. */
const calls = /updateLead/i

function compile(makes: string): void {
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        skipLibCheck: !makes.endsWith('.d.ts'),
        target: 'ES2022',
        module: 'ESNext',
        moduleResolution: 'Bundler',
        lib: ['ES2023', 'DOM', 'DOM.Iterable'],
        types: [],
      },
      files: [join('made', makes)],
    }),
  )
  run('npx', ['tsc', '-p', 'tsconfig.json'])
}

prepare()
writeFileSync(
  join(folder, 'openapi.json'),
  await withServer(async (url) => (await fetch(`${url}/api/admin/openapi.json`)).text()),
)
let failed = 0
const wanted = process.argv.slice(2)
const isWanted = ({ name }: { name: string }): boolean => wanted.length === 0 || wanted.includes(name)
const tried = generators.filter(isWanted)
const readers = [
  { name: 'newman', read: tryNewman },
  { name: '@usebruno/converters', read: tryBruno },
].filter(isWanted)

function report(name: string, error: unknown): void {
  failed++
  const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
  console.log(`${name}: FAILED ${(error as Error).message}\n${(stdout + stderr).split('\n').slice(0, 20).join('\n')}`)
}

for (const { name, command, makes, isPrinted } of tried) {
  const began = Date.now()
  try {
    const said = run('npx', command)
    const made = join(folder, 'made', makes)
    if (isPrinted) writeFileSync(made, said)
    const text = readFileSync(made, 'utf8')
    if (!calls.test(text)) throw new Error(`${makes} lacks calls of the contract.`)
    compile(makes)
    console.log(`${name}: compiles (${((Date.now() - began) / 1000).toFixed(0)} s)`)
  } catch (error) {
    report(name, error)
  }
}
for (const { name, read } of readers)
  try {
    const said = await withServer((url) => read({ folder, url, password: adminPassword }))
    console.log(`${name}: ${said}`)
  } catch (error) {
    report(name, error)
  }
console.log(`${tried.length + readers.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
