// Rules about names in generated code, where each schema and each enum becomes a type.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { partsOf } from '../grammar.ts'
import { type ContractDocument, isObject, type Path } from '../read.ts'
import type { Rule } from '../rule.ts'

/**
 * Names that generated code may not use: types of the standard libraries of Python, C# and Java,
 * and helper classes of generators.
 */
const taken = new Set(
  `Any Attribute AttributeError BlockingIOError BufferError Callable ClassVar Collection Configuration ConnectionError Counter
   Decimal Dict EOFError Ellipsis Enum Exception False Field FileExistsError FileNotFoundError Final Generic HttpClient IOError
   ImportError IndexError Iterable KeyError List Literal LookupError Mapping Match MemoryError Message Model Module NameError
   None Nullable OSError Optional Options Package Pattern PermissionError Process Protocol RuntimeError Self Sequence
   SystemError SystemExit Task Thread TimeoutError True Tuple Type TypeVar UUID Union UserWarning ValueError Version
   Warning`.split(/\s+/),
)

export const schemasShadowNothing: Rule = ({ document, report }) => {
  const globals = globalNames()
  for (const name of Object.keys(document.components?.schemas ?? {})) {
    if (!globals.has(name) && !taken.has(name)) continue
    report(
      ['components', 'schemas', name],
      name,
      `a generated type ${name} would shadow the standard type ${name}; choose a longer name, such as ${name}Record.`,
    )
  }
}

/** Returns the global names of browsers and Node. */
function globalNames(): Set<string> {
  const names = new Set(Object.getOwnPropertyNames(globalThis))
  const declared = /^ {0,4}(?:declare )?(?:interface|type|var|const|function|class|namespace) ([A-Z]\w*)/gm
  for (const file of typeLibraries()) {
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(declared)) names.add(name)
  }
  return names
}

/**
 * Returns the paths of TypeScript's type library files. In a deployment without development
 * packages the list is empty, so only the globals of Node count.
 */
function typeLibraries(): string[] {
  const folder = folderOfTypeScript()
  if (folder === undefined) return []
  return readdirSync(folder)
    .filter((file) => /^lib\..*\.d\.ts$/.test(file))
    .map((file) => join(folder, file))
}

function folderOfTypeScript(): string | undefined {
  try {
    return dirname(createRequire(import.meta.url).resolve('typescript'))
  } catch {
    return undefined
  }
}

/**
 * Reports a shared parameter with the name of a schema. Generators make a type for each parameter
 * and for each schema, so two types would have the same name.
 */
export const componentsHaveOneName: Rule = ({ document, report }) => {
  const { schemas = {}, parameters = {} } = document.components ?? {}
  for (const name of Object.keys(parameters)) {
    if (schemas[name] === undefined) continue
    report(
      ['components', 'parameters', name],
      name,
      `a schema has this name too, and generated types share one list of names; rename one, such as Filter${name}.`,
    )
  }
}

const maxCopies = 2

/**
 * Reports an inline enum that occurs in more than two places or equals a shared schema. Each copy
 * becomes an unnamed type, and the copies drift apart.
 */
export const enumsAreShared: Rule = ({ document, report }) => {
  const places = new Map<string, Path[]>()
  for (const { kind, node, at } of partsOf(document)) {
    const isComponent = at.length === 3 && at[1] === 'schemas'
    if (kind !== 'schema' || !Array.isArray(node.enum) || isComponent || isCustomAttribute(document, at)) continue
    const values = JSON.stringify(node.enum.filter((value) => value !== null))
    places.set(values, [...(places.get(values) ?? []), at])
  }
  const components = new Map(
    Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => [
      JSON.stringify(isObject(schema) ? schema.enum : undefined),
      name,
    ]),
  )
  for (const [values, found] of places) {
    const component = components.get(values)
    if (found.length <= maxCopies && component === undefined) continue
    for (const at of found) {
      const where = at.filter((step) => typeof step === 'string' && !/^(components|schemas|properties)$/.test(step))
      const advice = component === undefined ? 'make it a schema of its own' : `refer to ${component}`
      report(
        at,
        where.join('.'),
        `the list ${values} occurs in several places, and each would get its own type; ${advice}.`,
      )
    }
  }
}

/**
 * Returns whether the path leads into a record type with custom attributes. The enum of a custom
 * attribute lists option ids, so it is not a shared enum.
 */
function isCustomAttribute(document: ContractDocument, [section, part, name]: Path): boolean {
  const schema = section === 'components' && part === 'schemas' && document.components?.schemas?.[String(name)]
  return isObject(schema) && schema['x-entity'] !== undefined
}
