// `npm run new-field -- leads probability integer --min 0 --max 100` writes a field of a resource:
// contract, migration and slice, and regenerates. Writes nothing if the field exists.
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sinceOf } from '../compat/versions.ts'
import { nextMigration, personalDataFile, runNode, withLineAfter } from '../new-resource/new-resource.ts'
import { contractFile, findRoot, readContract } from '../read.ts'
import { type FieldPlaces, fieldPlaces, withField } from './contract.ts'
import { type Field, fieldOf, importsOf, migrationColumns, sliceLines, usage } from './field.ts'

/** Writes the field and returns the paths of the written files, and the lines to write by hand. */
export function newField(root: string, slug: string, wish: Field): { written: string[]; left: string[] } {
  const contract = readContract(root)
  const field = { ...wish, since: sinceOf(root, contract.document) }
  const parts = fieldPlaces(contract, slug)
  const slice = sliceOf(root, parts)
  const { table, text, left } = withLines(slice.text, parts, field)
  const migration = nextMigration(root, `${table}_${field.name}`)
  const step = `  step('${migration}', () => import('./migrations/${migration}.ts')),`
  const files = new Map([
    [contractFile, withField(contract, parts, field)],
    [`db/migrations/${migration}.ts`, migrationOf(table, field)],
    ['db/migrate.ts', withLineAfter(root, 'db/migrate.ts', /^ {2}step\(/, step)],
    [slice.path, text],
    [personalDataFile, withPersonalTexts(readFileSync(join(root, personalDataFile), 'utf8'), table, field)],
  ])
  for (const [path, content] of files) writeFileSync(join(root, path), content)
  return { written: [...files.keys()], left }
}

/**
 * Adds the columns to the registry of personal data: texts, so that an erasure looks into them, and
 * dates and fixed values as those that name no person.
 */
function withPersonalTexts(text: string, table: string, field: Field): string {
  const columns = migrationColumns(field).map(([name]) => name)
  if (['integer', 'decimal', 'boolean'].includes(field.type)) return text
  const list = field.type === 'string' || field.type === 'text' ? 'texts' : 'other'
  const isEmpty = new RegExp(`(\\n {2}${table}: )nothing\\(\\s*('[^']*'),?\\s*\\),`)
  const entry = text.replace(isEmpty, "$1{ texts: '', other: $2 },")
  const found = new RegExp(`(\\n {2}${table}: \\{[^}]*?\\b${list}: ')([^']*)'`)
  if (found.test(entry))
    return entry.replace(found, (_, head, known) => `${head}${[known, ...columns].join(' ').trim()}'`)
  const texts = new RegExp(`(\\n {2}${table}: \\{[^}]*?texts: '[^']*')`)
  return entry.replace(texts, `$1, other: '${columns.join(' ')}'`)
}

function sliceOf(root: string, { list }: FieldPlaces): { path: string; text: string } {
  const folder = join(root, 'src/resources')
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts')) continue
    const text = readFileSync(join(folder, path), 'utf8')
    if (text.includes(`list: '${list}'`)) return { path: `src/resources/${path.replaceAll('\\', '/')}`, text }
  }
  throw new Error(`No slice in src/resources defines a resource with the list ${list}.`)
}

function migrationOf(table: string, field: Field): string {
  const columns = migrationColumns(field)
  const sorted = columns.at(-1)?.[0] ?? field.name
  const isIndexed = field.type !== 'text'
  const kinds = [...new Set(columns.map(([, kind]) => kind.replace('()', '')))]
  const imports = ['addColumn', ...(isIndexed ? ['createIndex'] : []), 'nullable', ...kinds].sort()
  return [
    `// Adds the column ${field.name}${isIndexed ? ', and the index by which lists sort and filter' : ''}.`,
    '',
    "import type { Kysely } from 'kysely'",
    "import type { Dialect } from '../dialect.ts'",
    `import { ${imports.join(', ')} } from '../schema/columns.ts'`,
    '',
    'export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {',
    ...columns.map(([name, kind]) => `  await addColumn(db, dialect, '${table}', '${name}', nullable(${kind}))`),
    ...(isIndexed ? [`  await createIndex(db, dialect, '${table}', { columns: ['${sorted}', 'id'] })`] : []),
    '}',
    '',
  ].join('\n')
}

/**
 * Returns the text of a slice with the lines of the field, and those that have to be written by
 * hand.
 */
function withLines(text: string, { schema }: FieldPlaces, field: Field) {
  const table = /\n\s*table: '(\w+)'/.exec(text)?.[1]
  if (table === undefined) throw new Error('The slice names no table: add the field by hand.')
  const isBody = /\n\s*toRow: async \(body\b/.test(text)
  const lines = sliceLines(field, table, isBody ? `body.${field.name}` : field.name)
  const left: string[] = []
  let changed = text
  const insert = (place: string, pattern: RegExp, to: (found: string) => string): void => {
    if (pattern.test(changed)) changed = changed.replace(pattern, to)
    else left.push(place)
  }
  const add = (line: string) => (found: string) => `${found}\n${line}`
  if (lines.sort) insert(`sort: ${lines.sort}`, /\n\s*sort: \{/, add(lines.sort))
  if (lines.filter) insert(`filter: ${lines.filter}`, /\n\s*filter: \{/, add(lines.filter))
  const columns = lines.columns.join('\n')
  const rule = /\n\s*toRow: [\s\S]*?(?=\n\s*(?:refersTo|maskInput|toReply):)/
  const planned = rule.exec(changed)?.[0]
  const written = planned && withColumns(planned, field.name, columns)
  if (written) changed = changed.replace(planned, () => written)
  else left.push(`toRow: ${columns}`)
  const reply = lines.reply.replace('{{schema}}', schema)
  insert(
    `toReply: ${reply}`,
    /\n\s*created_at: row\.created_at,(?![\s\S]*\n\s*toReply:)/,
    (found) => `\n${reply}${found}`,
  )
  for (const [name, file] of importsOf(field)) changed = withImport(changed, name, file)
  return { table, text: changed, left }
}

/**
 * Returns `toRow` with the columns added wherever it writes them out, or undefined if it does not.
 */
function withColumns(rule: string, name: string, columns: string): string | undefined {
  const named = rule.replace(/(toRow: async \(\{[^}]*?),? \}/, `$1, ${name} }`)
  const written = named
    .replaceAll(/columns(?:: | = )\{/g, (found) => `${found}\n${columns}\n`)
    .replaceAll(
      /columns: (await \w+\([\s\S]*?\)),?\n/g,
      (_, call: string) => `columns: { ...(${call}), ${columns} },\n`,
    )
  return written === named ? undefined : written
}

function withImport(text: string, name: string, file: string): string {
  const known = new RegExp(`import \\{([^}]*)\\} from '(?:\\.\\./)+${file.replaceAll('.', '\\.')}'`)
  const [line, names = ''] = known.exec(text) ?? []
  if (line === undefined)
    return text.replace(/\nimport /, `\n${['import {', name, '} from', `'../../${file}'`].join(' ')}\nimport `)
  if (new RegExp(`\\b${name}\\b`).test(names)) return text
  return text.replace(line, line.replace('{', `{ ${name},`))
}

function main([slug = '', ...rest]: string[]): number {
  if (slug === '' || rest.length < 2) {
    console.error(usage)
    return 2
  }
  const root = findRoot()
  let left: string[]
  try {
    const made = newField(root, slug, fieldOf(rest))
    left = made.left
    for (const path of made.written) console.log(`wrote ${path}`)
    const code = made.written.filter((path) => path.endsWith('.ts'))
    runNode(root, ['node_modules/@biomejs/biome/bin/biome', 'check', '--write', '--vcs-enabled=false', ...code])
  } catch (error) {
    console.error((error as Error).message)
    return 1
  }
  const status = runNode(root, [...process.execArgv, 'codegen/regenerate.ts'])
  for (const line of left) console.log(`Write by hand in the slice: ${line}`)
  return status
}

const script = process.argv[1]
if (script !== undefined && existsSync(script) && pathToFileURL(realpathSync(script)).href === import.meta.url)
  process.exitCode = main(process.argv.slice(2))
