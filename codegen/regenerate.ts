// `npm run regenerate` lints the contract, then writes the generated files that changed. With
// --check the command writes nothing, names the stale files and exits with code 1 if there are any.
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { changesFile, renderChanges } from './compat/changes.ts'
import { gateOfRepository } from './compat/gate.ts'
import { renderDocument } from './document.ts'
import { digestOfFiles, digestOfShape, openMemory } from './fresh.ts'
import { renderInventory } from './inventory.ts'
import { lint } from './lint.ts'
import { renderOperations } from './operations.ts'
import { type Contract, contractFile, findRoot, readContract } from './read.ts'
import { renderSchema } from './schema.ts'
import { renderTableTypes } from './tables.ts'

interface Output {
  path: string
  render: (contract: Contract, root: string) => string | Promise<string>
  /** The inputs of a slow rendering. The file is rendered again only when they change. */
  from?: 'shape' | 'tables'
}

/** Returns digests of the contract without prose and of the tables, with their readers. */
const inputsOf = (root: string, { document }: Contract): Record<'shape' | 'tables', string> => ({
  shape:
    digestOfShape(document) +
    digestOfFiles(root, 'codegen', 'src/contract/input', 'test/contract/released.json', 'package-lock.json'),
  tables: digestOfFiles(root, 'db/migrations', 'db/schema', 'db/migrate.ts', 'package-lock.json'),
})

/** Every generated file of the repository, with the function that renders it. */
export const outputs: readonly Output[] = [
  { path: 'src/contract/schema.gen.ts', render: (contract) => renderSchema(contract), from: 'shape' },
  { path: 'src/contract/operations.gen.ts', render: (contract) => renderOperations(contract) },
  { path: 'src/contract/document.gen.json', render: renderDocument },
  { path: 'test/contract/inventory.txt', render: renderInventory },
  { path: 'db/tables.gen.ts', render: renderTableTypes, from: 'tables' },
  {
    path: changesFile,
    render: (contract, root) => renderChanges(root, JSON.parse(renderDocument(contract))),
    from: 'shape',
  },
]

/**
 * The generated files that a compiled server reads. A deployment can edit its contract and
 * regenerate these files without compiling.
 */
const builtOutputs: readonly Output[] = [
  { path: 'dist/src/contract/operations.gen.js', render: (contract) => renderOperations(contract, 'js') },
  { path: 'dist/src/contract/document.gen.json', render: renderDocument },
]

export interface Regenerated {
  written: string[]
  stale: string[]
  findings: string[]
  /** The refusals of the gate of `npm run check`. Empty if the changelog did not change. */
  warnings: string[]
}

/**
 * Lints the contract and writes the generated files that changed. Writes nothing if there are
 * findings. With `check`, only returns the stale files in `stale`, and renders all of them.
 */
export async function regenerate({ root, check }: { root: string; check: boolean }): Promise<Regenerated> {
  const contract = readContract(root)
  const memory = check || !hasSources(root) ? undefined : openMemory(root)
  const inputs = memory && inputsOf(root, contract)
  const areExamplesTrue = inputs && memory.knows('examples', inputs.shape)
  const result: Regenerated = { written: [], stale: [], findings: lint(contract, { areExamplesTrue }), warnings: [] }
  if (result.findings.length > 0) return result
  if (inputs) memory.learn('examples', inputs.shape)
  const texts: [string, string][] = []
  for (const { path, render, from } of outputsOf(root)) {
    const made = from && inputs?.[from]
    if (made && memory?.knows(path, made, textOf(join(root, path)))) continue
    const text = await render(contract, root)
    texts.push([path, text])
    if (made) memory?.learn(path, made, text)
  }
  memory?.save()
  for (const [path, text] of texts) {
    const file = join(root, path)
    if (textOf(file) === text) continue
    result.stale.push(path)
    if (check) continue
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    result.written.push(path)
  }
  if (result.written.includes(changesFile))
    result.warnings = gateOfRepository(root, JSON.parse(renderDocument(contract)))
  return check ? result : { ...result, stale: [] }
}

const textOf = (file: string): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)

// The package has READMEs in src, but no sources.
const hasSources = (root: string): boolean => existsSync(join(root, 'src/cli.ts'))

function outputsOf(root: string): Output[] {
  const isCompiled = fileURLToPath(import.meta.url).startsWith(join(realpathSync(root), 'dist'))
  return [...(hasSources(root) ? outputs : []), ...(isCompiled ? builtOutputs : [])]
}

export async function main(args: string[]): Promise<number> {
  const root = findRoot()
  const unknown = args.find((arg) => arg !== '--check')
  if (unknown !== undefined) {
    console.error(`regenerate knows only --check, not ${unknown}.`)
    return 2
  }
  const check = args.includes('--check')
  const { written, stale, findings, warnings } = await regenerate({ root, check })
  for (const finding of findings) console.error(finding)
  if (findings.length > 0) {
    console.error(
      `\n${findings.length} findings; nothing was generated. Correct ${contractFile}, then: npm run regenerate`,
    )
    return 1
  }
  for (const path of written) console.log(`wrote ${path}`)
  for (const path of stale) console.error(`${path} is stale: it differs from its source. Run: npm run regenerate`)
  for (const warning of warnings) console.error(`npm run check will refuse: ${warning}`)
  if (written.length + stale.length === 0) console.log('Every generated file is up to date.')
  return stale.length > 0 ? 1 : 0
}

const script = process.argv[1]
if (script !== undefined && existsSync(script) && pathToFileURL(realpathSync(script)).href === import.meta.url) {
  process.exitCode = await main(process.argv.slice(2))
}
