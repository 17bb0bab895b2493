// `npm run new-resource -- parcels` writes the parts of a new resource: contract, migration, code
// and test. `--reference lead` adds a reference to another record, and `--one-of state=open,sent` a
// field with fixed values. The command also registers the resource and regenerates the generated
// files. Writes nothing if the name is taken.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { sinceOf } from '../compat/versions.ts'
import { type Contract, contractFile, findRoot, type Path, readContract, type SchemaObject } from '../read.ts'
import { type ChoiceNames, choiceOf, type Names, namesOf, type ReferenceNames } from './names.ts'

/** The test that contains the order in which slices may import each other. */
const orderFile = 'test/contract/imports.test.ts'

const usage = 'npm run new-resource -- parcels [--reference lead] [--one-of state=open,sent]'

/** The names for the templates: of the resource, and of its reference and choice if it has them. */
type Filling = Names &
  Partial<ReferenceNames & ChoiceNames & { newFilter: string; since: string }> &
  Record<'valueField' | 'checkReference' | 'sentKeys', string>

interface Wish {
  slug: string
  /** The singular name of the record to refer to, such as `lead`. */
  reference?: string | undefined
  /** A field and its values, such as `state=open,sent`. */
  choice?: string | undefined
}

/** Writes the resource and returns the paths of the written files. */
export function newResource(root: string, { slug, reference, choice }: Wish): string[] {
  const own = namesOf(slug)
  const refers = reference === undefined ? undefined : referenceOf(root, reference)
  const chosen = choice === undefined ? undefined : choiceOf(choice, own)
  const contract = readContract(root)
  const since = sinceOf(root, contract.document)
  const names: Filling = {
    ...own,
    ...(since && { since }),
    ...refers,
    ...chosen,
    valueField: refers || chosen ? ', valueField' : '',
    checkReference: refers ? 'checkReference, ' : '',
    sentKeys: [refers?.reference, chosen?.choice].map((key) => (key === undefined ? '' : `, ${key}`)).join(''),
  }
  const migration = nextMigration(root, names.table)
  const files = new Map([
    [contractFile, withResource(contract, names)],
    [`db/migrations/${migration}.ts`, fill('migration.ts', names)],
    ['db/migrate.ts', withLineAfter(root, 'db/migrate.ts', /^ {2}step\(/, migrationLine(migration))],
    [`src/resources/${slug}/resource.ts`, fill('resource.ts', names)],
    ['src/resources.ts', withLineAfter(root, 'src/resources.ts', /^export /, exportLine(names))],
    [personalDataFile, withLineAfter(root, personalDataFile, /^ {2}\w+: nothing\(/, personalDataLine(names))],
    ['codegen/events.ts', withLineAfter(root, 'codegen/events.ts', /^ {2}files: noun\(/, eventLine(names))],
    [`test/resources/${slug}.test.ts`, fill('test.ts', names)],
    [orderFile, withSliceInOrder(root, slug)],
  ])
  for (const [path, text] of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return [...files.keys()]
}

/**
 * Returns the text of a template. Each `{{key}}` is replaced with that name of the resource. A line
 * that begins with `{{?key}}` is omitted if there is no such name.
 */
function fill(template: string, names: Filling): string {
  const text = readFileSync(new URL(`templates/${template}.txt`, import.meta.url), 'utf8')
  return text
    .replaceAll(/^\{\{\?(\w+)\}\}(.*\n)/gm, (_, name: keyof Filling, line: string) =>
      names[name] === undefined ? '' : line,
    )
    .replaceAll(/\{\{(\w+)\}\}/g, (_, name: keyof Filling) => names[name] ?? '')
    .replaceAll(/^ *# ── .*$/gm, (line) => `${line} `.padEnd(44, '─'))
}

/** The registry of personal data. The compiler demands each table in it. */
export const personalDataFile = 'src/resources/persons/erase/personal-data.ts'
const personalDataLine = ({ table }: Names): string => `  ${table}: { texts: 'name name_key' },`

const migrationLine = (name: string): string => `  step('${name}', () => import('./migrations/${name}.ts')),`
const exportLine = ({ camel, slug }: Names): string => `export { ${camel} } from './resources/${slug}/resource.ts'`
const eventLine = ({ event, slug, noun, single }: Names): string =>
  `  ${event}: noun('${slug}', 'A ${noun}', created, '${single}'),`

/** Returns the names of the resource to refer to, from src/resources.ts and its definition. */
function referenceOf(root: string, singular: string): ReferenceNames & { newFilter?: string } {
  const exported = [
    ...readFileSync(join(root, 'src/resources.ts'), 'utf8').matchAll(
      /^export \{ (\w+) \} from '\.\/resources\/(.+)'$/gm,
    ),
  ]
  const found = exported.flatMap(([, camel = '', file = '']) => {
    const definition = readFileSync(join(root, 'src/resources', file), 'utf8')
    const [, noun = ''] = /\bnoun: '([^']+)'/.exec(definition) ?? []
    const [, table = ''] = /\btable: '(\w+)'/.exec(definition) ?? []
    return noun === '' || table === '' ? [] : [{ noun, table, camel, file }]
  })
  const slug = singular.replaceAll(/[ _]/g, '-')
  const other = found.find(({ noun }) => noun.replaceAll(' ', '-') === slug)
  if (!other)
    throw new Error(
      `No resource is called ${singular}: write one of ${found.map(({ noun }) => noun.replaceAll(' ', '-')).join(', ')}.`,
    )
  const single = namesOf(`${slug}s`).single
  const { parameters } = readContract(root).document.components ?? {}
  return {
    reference: `${slug.replaceAll('-', '_')}_id`,
    referenceNoun: other.noun,
    referenceSingle: single,
    referenceTable: other.table,
    referenceCamel: other.camel,
    referenceFile: other.file,
    ...(parameters?.[`${single}Id`] === undefined && { newFilter: single }),
  }
}

export function nextMigration(root: string, table: string): string {
  const numbers = readdirSync(join(root, 'db/migrations')).map((file) => Number.parseInt(file, 10) || 0)
  return `${String(Math.max(...numbers) + 1).padStart(4, '0')}_${table}`
}

/**
 * Returns the text of the file with `line` inserted after the last line that matches the pattern.
 */
export function withLineAfter(root: string, path: string, pattern: RegExp, line: string): string {
  const lines = readFileSync(join(root, path), 'utf8').split('\n')
  const last = lines.findLastIndex((each) => pattern.test(each))
  if (last < 0) throw new Error(`${path} has no line like ${pattern}: register the resource there by hand.`)
  return lines.toSpliced(last + 1, 0, line).join('\n')
}

/** Returns the text of the import test with the slice added to the last group of the order. */
function withSliceInOrder(root: string, slug: string): string {
  const text = readFileSync(join(root, orderFile), 'utf8')
  const order = /(\nconst groups = \[[\s\S]*?),?\s*\](,?\n\]\n)/
  if (!order.test(text)) throw new Error(`${orderFile} has no order of slices: add the slice by hand.`)
  return text.replace(order, (_, groups: string, end: string) => `${groups}, '${slug}']${end}`)
}

/**
 * Returns the text of the contract with the tag, paths, parameter, schemas, permission keys and
 * event entity of the resource added.
 */
function withResource(contract: Contract, names: Filling): string {
  const { document } = contract
  const { slug, tag, nouns, key } = names
  if (document.paths?.[`/api/admin/${slug}`] !== undefined || document.tags?.some(({ name }) => name === tag))
    throw new Error(`The contract has ${nouns} already.`)
  const lines = contract.text.split('\n')
  const enumOf = (schema: string): Path => {
    const values = (document.components?.schemas?.[schema] as SchemaObject | undefined)?.enum as unknown[]
    return ['components', 'schemas', schema, 'enum', values.length - 1]
  }
  const keys = [key, ...['create', 'edit', 'delete'].map((verb) => `${key}.${verb}`)]
  const insertions: [line: number, text: string][] = [
    [lines.indexOf('paths:') - 1, `  - name: ${tag}\n    description: ${tag}.`],
    [lines.indexOf('components:') - 1, `\n${fill('paths.yaml', names).trimEnd()}`],
    [lines.indexOf('  parameters:') + 1, fill('parameters.yaml', names)],
    [contract.lineOf(enumOf('PermissionKey')), keys.map((key) => `        - ${key}`).join('\n')],
    [contract.lineOf(enumOf('EventEntity')), `        - ${slug}`],
    [lines.length - 1, `\n${fill('schemas.yaml', names).trimEnd()}`],
  ]
  for (const [line, text] of insertions.sort(([one], [other]) => other - one)) lines.splice(line, 0, text)
  return lines.join('\n')
}

export const runNode = (root: string, args: string[]): number =>
  spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1

function wishOf(args: string[]): Wish | undefined {
  try {
    const options = { reference: { type: 'string' }, 'one-of': { type: 'string' } } as const
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    const [slug, ...rest] = positionals
    if (slug === undefined || rest.length > 0) return undefined
    return { slug, reference: values.reference, choice: values['one-of'] }
  } catch {
    return undefined
  }
}

function main(args: string[]): number {
  const wish = wishOf(args)
  if (!wish) {
    console.error(`Write the name in the plural: ${usage}`)
    return 2
  }
  const root = findRoot()
  try {
    const written = newResource(root, wish)
    for (const path of written) console.log(`wrote ${path}`)
    const code = written.filter((path) => path.endsWith('.ts'))
    runNode(root, ['node_modules/@biomejs/biome/bin/biome', 'format', '--write', '--vcs-enabled=false', ...code])
  } catch (error) {
    console.error((error as Error).message)
    return 1
  }
  // Regenerates in a new process, because this process has loaded the old list of events.
  const status = runNode(root, [...process.execArgv, 'codegen/regenerate.ts'])
  console.log(
    `\nNext: add its fields. If other slices will import it, move it to the left in the order of ${orderFile}.`,
  )
  return status
}

const script = process.argv[1]
if (script !== undefined && existsSync(script) && pathToFileURL(realpathSync(script)).href === import.meta.url)
  process.exitCode = main(process.argv.slice(2))
