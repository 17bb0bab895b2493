// Adds a field to the text of openapi.yaml: the property in replies and bodies, its filters and
// sort names, and its value in examples.
import {
  type Contract,
  isObject,
  listOperations,
  type Operation,
  type Path,
  refPath,
  resolve,
  type SchemaObject,
} from '../read.ts'
import { exampleText, type Field, filterParameters, pascal, propertyLines } from './field.ts'

/** The parts of the contract that know the fields of a resource. */
export interface FieldPlaces {
  list: string
  /** The name of the schema of a record, and all schemas of replies with its fields. */
  schema: string
  replies: string[]
  bodies: string[]
  /** The name of the parameter component with the sort names. */
  sort: string
}

const nameOf = (part: unknown): string | undefined =>
  isObject(part) && typeof part.$ref === 'string' ? refPath(part.$ref).at(-1) : undefined

/**
 * Finds a resource by the last segment of its path. Throws an error for a user who misspelled it.
 */
export function fieldPlaces({ source }: Contract, slug: string): FieldPlaces {
  const operations = listOperations(source)
  const at = (method: string, path: string) =>
    operations.find((each) => each.method === method && each.path === path)?.operation
  const found = operations.find(
    ({ method, path, id }) => method === 'get' && path.endsWith(`/${slug}`) && /^list/.test(id) && !path.includes('{'),
  )
  const refs = found?.parameters.map(({ part }) => part) ?? []
  const sort = (found?.operation.parameters ?? []).map(nameOf).find((name) => /Sort$/.test(name ?? ''))
  if (found === undefined || sort === undefined || refs.length === 0)
    throw new Error(`The contract has no list at …/${slug}: write the last segment of its path, such as leads.`)
  const create = at('post', found.path)
  const update = at('put', `${found.path}/{id}`)
  const get = at('get', `${found.path}/{id}`)
  const schema = recordOf(source, get) ?? ''
  const bodies = [create, update].flatMap((operation) =>
    Object.values(resolve(source, operation?.requestBody)?.content ?? {}).map(({ schema }) => nameOf(schema)),
  )
  const schemas = source.components?.schemas ?? {}
  if (schemas[schema] === undefined || bodies.some((name) => name === undefined))
    throw new Error(`The records or bodies of ${slug} have no named schemas: add the field by hand.`)
  return {
    list: found.id,
    schema,
    replies: [schema, `Included${schema}`].filter((name) => schemas[name] !== undefined),
    bodies: [...new Set(bodies as string[])],
    sort,
  }
}

function recordOf(source: Contract['source'], get: Operation | undefined): string | undefined {
  const json = resolve(source, get?.responses?.['200'])?.content?.['application/json']
  const result = resolve(source, json?.schema as SchemaObject | undefined)
  return nameOf(result?.properties?.data)
}

type Lines = (string | string[])[]

/**
 * Returns the text of the contract with the field. Throws if the resource has the field already.
 */
export function withField(contract: Contract, parts: FieldPlaces, field: Field): string {
  const { source, lineOf } = contract
  const { name } = field
  const schemas = (source.components?.schemas ?? {}) as Record<string, SchemaObject>
  for (const schema of [...parts.replies, ...parts.bodies])
    if (schemas[schema]?.properties?.[name] !== undefined) throw new Error(`${schema} has a property ${name} already.`)
  // Each line becomes a list of lines, so that the numbers of the lines stay.
  const lines: Lines = contract.text.split('\n')
  const before = (line: number, added: string[]): void => {
    lines[line - 1] = [...added, ...[lines[line - 1] ?? []].flat()]
  }
  const editor: Editor = { contract, lines, before }
  const indented = (text: string): string => `        ${text}`
  for (const schema of parts.replies) {
    const at: Path = ['components', 'schemas', schema]
    addToList(editor, [...at, 'required'], [name], 'created_at')
    before(placeIn(contract, schema, ['created_at']), propertyLines(field, parts.schema, false).map(indented))
    addToExamples(editor, schema, field)
  }
  for (const schema of parts.bodies)
    before(
      placeIn(contract, schema, ['tag_ids', 'custom_attributes']),
      propertyLines(field, parts.schema, true).map(indented),
    )
  if (field.type === 'enum') before(lineOf(['components', 'schemas', parts.schema]), enumSchema(parts.schema, field))
  const filters = filterParameters(field, parts.schema)
  before(
    lineOf(['components', 'parameters', parts.sort]),
    filters.flatMap(({ lines: own }) => [...own, '']),
  )
  if (field.type !== 'text') addSortNames(editor, parts.sort, name)
  addParameters(
    editor,
    parts,
    filters.map(({ key }) => key),
  )
  return lines.flat().join('\n')
}

interface Editor {
  contract: Contract
  lines: Lines
  before: (line: number, added: string[]) => void
}

const valueAt = ({ source }: Contract, at: Path): unknown =>
  at.reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], source)

const indentOf = (line: string): number => line.length - line.trimStart().length
const textAt = ({ lines }: Editor, line: number): string => [lines[line - 1] ?? ''].flat().at(-1) ?? ''

/** Adds entries to a list of plain values, before an entry or at the end. */
function addToList(editor: Editor, at: Path, added: readonly string[], next?: string): void {
  const { contract, lines, before } = editor
  const values = valueAt(contract, at) as unknown[]
  const index = next === undefined ? -1 : values.indexOf(next)
  const line = contract.lineOf(at)
  const text = textAt(editor, line)
  if (!text.includes('[')) {
    const last = contract.lineOf([...at, index < 0 ? values.length - 1 : index])
    const entries = added.map((each) => `${' '.repeat(indentOf(textAt(editor, last)))}- ${each}`)
    before(index < 0 ? last + 1 : last, entries)
    return
  }
  const entry = index < 0 ? ']' : ` ${next}`
  const place = text.lastIndexOf(entry)
  const inserted = index < 0 ? `, ${added.join(', ')}` : ` ${added.join(', ')},`
  const longer = text.slice(0, place) + inserted + text.slice(place)
  const rest = [lines[line - 1] ?? []].flat().slice(0, -1)
  lines[line - 1] = [...rest, ...(longer.length <= 120 ? [longer] : asBlock(longer))]
}

/**
 * Adds the names for both directions. A list that shares its names with others gets names of its
 * own.
 */
function addSortNames(editor: Editor, sort: string, name: string): void {
  const { contract, lines } = editor
  const at: Path = ['components', 'parameters', sort, 'schema', 'items']
  const shared = nameOf(valueAt(contract, at))
  if (shared === undefined) {
    addToList(editor, [...at, 'enum'], [name], '-id')
    addToList(editor, [...at, 'enum'], [`-${name}`])
    return
  }
  const names = valueAt(contract, ['components', 'schemas', shared, 'enum']) as string[]
  const line = contract.lineOf(at)
  const indent = ' '.repeat(indentOf(textAt(editor, line)))
  const all = [...names.slice(0, names.length / 2), name, ...names.slice(names.length / 2), `-${name}`]
  const own = ['items:', '  type: string', '  enum:', ...all.map((each) => `    - ${each}`)]
  lines[line - 1] = own.map((each) => indent + each)
}

/** Returns a list in brackets that has become too long as a block. */
function asBlock(line: string): string[] {
  const [, key = '', values = ''] = /^(\s*\w+:) \[(.*)\]$/.exec(line) ?? []
  return [key, ...values.split(', ').map((value) => `${' '.repeat(indentOf(line) + 2)}- ${value}`)]
}

/**
 * Returns the line before which a new property stands: that of the first known name, or the end.
 */
function placeIn(contract: Contract, schema: string, names: readonly string[]): number {
  const at: Path = ['components', 'schemas', schema]
  const known = valueAt(contract, at) as Record<string, unknown>
  const properties = known.properties as Record<string, unknown>
  const next = names.find((name) => properties[name] !== undefined)
  if (next !== undefined) return contract.lineOf([...at, 'properties', next])
  const keys = Object.keys(known)
  return contract.lineOf([...at, keys[keys.indexOf('properties') + 1] ?? 'properties'])
}

/** Adds the value to every example of the contract that is a whole record of the schema. */
function addToExamples(editor: Editor, schema: string, field: Field): void {
  const { contract, lines, before } = editor
  const required = (valueAt(contract, ['components', 'schemas', schema, 'required']) as string[]) ?? []
  const done = new Set<number>()
  const visit = (value: unknown, at: Path): void => {
    if (Array.isArray(value)) for (const [index, each] of value.entries()) visit(each, [...at, index])
    if (!isObject(value)) return
    for (const [key, each] of Object.entries(value)) visit(each, [...at, key])
    const isExample = at.includes('examples') || at.includes('example')
    if (!isExample || !required.every((key) => key in value) || field.name in value) return
    const line = contract.lineOf([...at, 'created_at'])
    if (done.has(line)) return
    done.add(line)
    const text = textAt(editor, line)
    if (/^\s*created_at:/.test(text))
      before(line, [`${' '.repeat(indentOf(text))}${field.name}: ${exampleText(field)}`])
    else {
      const rest = [lines[line - 1] ?? []].flat().slice(0, -1)
      lines[line - 1] = [...rest, text.replaceAll('created_at:', `${field.name}: ${exampleText(field)}, created_at:`)]
    }
  }
  // Schemas with the same fields share the examples, which the first of them changes.
  const isFirst = !schema.startsWith('Included')
  visit(isFirst ? contract.source : { ...contract.source, paths: undefined, components: undefined }, [])
}

const enumSchema = (schema: string, field: Field): string[] => [
  `    ${schema}${pascal(field.name)}:`,
  `      description: The values of \`${field.name}\`.`,
  '      type: string',
  `      enum: [${field.oneOf.join(', ')}]`,
  `      examples: [${field.oneOf[0]}]`,
  '',
]

/** Adds the parameters to every operation that sorts by the same names. */
function addParameters({ contract, lines, before }: Editor, { sort }: FieldPlaces, keys: readonly string[]): void {
  const done = new Set<number>()
  for (const [path, item] of Object.entries(contract.source.paths ?? {}))
    for (const [method, operation] of Object.entries(item)) {
      const parameters = (operation as { parameters?: unknown[] }).parameters ?? []
      if (!parameters.some((each) => nameOf(each) === sort)) continue
      const place = parameters.findLastIndex((each) => {
        const parameter = resolve(contract.source, each as SchemaObject) as { in?: string } | undefined
        return parameter?.in === 'query'
      })
      const line = contract.lineOf(['paths', path, method, 'parameters', place])
      if (done.has(line)) continue
      done.add(line)
      const indent = ' '.repeat(indentOf([lines[line - 1] ?? ''].flat().at(-1) ?? ''))
      before(
        line + 1,
        keys.map((key) => `${indent}- $ref: '#/components/parameters/${key}'`),
      )
    }
}
