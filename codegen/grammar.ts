// Defines a table of the keys that OpenAPI 3.1 and our x- extensions allow in each kind of object.
// `partsOf` uses the table to visit each object of a contract. The lint refuses any other key,
// because a misspelled key would silently have no effect.
import { type ContractDocument, isObject, type Path } from './read.ts'

const described = 'summary description'
/** Since and until when a part exists, and the part to use instead (codegen/compat). */
const lifetime = 'x-since deprecated x-deprecated-on x-sunset x-replaced-by x-alias'
const valued = 'schema:schema content:{mediaType} example! examples:{example}'

/**
 * Lists the keys of each kind of object. The suffix of a key gives the form of its value. No
 * suffix: a plain value. `!`: data whose keys are not checked. `:kind`: an object of that kind.
 * `:[kind]`: a list of such objects. `:{kind}`: a map from names to such objects. openapi.yaml must
 * use the order of the keys in this table (rules/style.ts).
 */
const table = {
  document: `openapi jsonSchemaDialect info:info servers:[server] security! tags:[tag] paths:{pathItem}
    components:components externalDocs:docs`,
  info: 'title version summary termsOfService contact:contact license:license description',
  contact: 'name url email',
  license: 'name identifier url',
  server: 'url description variables!',
  tag: 'name description externalDocs:docs',
  docs: 'url description',
  components: `securitySchemes:{scheme} headers:{header} x-headers:{header} responses:{response} parameters:{parameter}
    requestBodies:{requestBody} examples:{example} schemas:{schema}`,
  scheme: '$ref type scheme bearerFormat in name flows! openIdConnectUrl description',
  // A path has no `parameters`, because some generators ignore the parameters of a path. Each
  // operation lists all its parameters.
  pathItem: `$ref ${described} servers:[server] get:operation post:operation put:operation
    delete:operation`,
  operation: `operationId tags ${described} externalDocs:docs ${lifetime} security! servers:[server]
    x-permission x-any-user x-ability x-events x-no-event x-served-by x-any-origin
    parameters:[parameter] requestBody:requestBody responses:{response}`,
  parameter: `$ref name in required ${lifetime} ${described} allowEmptyValue style explode allowReserved ${valued}`,
  header: `$ref ${described} required deprecated x-carried-by style explode ${valued}`,
  requestBody: `$ref ${described} required content:{mediaType}`,
  response: `$ref ${described} x-deferred headers:{header} content:{mediaType} links!`,
  mediaType: 'schema:schema encoding:{encoding} example! examples:{example}',
  encoding: 'contentType headers:{header} style explode allowReserved',
  example: `$ref ${described} value! externalValue`,
  schema: `$ref $id $schema $anchor $comment title description externalDocs:docs ${lifetime} readOnly writeOnly
    x-entity x-bytes x-hint x-derived x-areas x-typed-by type format x-value x-line x-strict x-explicit-null x-reference x-aliases! const! enum! pattern minLength maxLength
    multipleOf minimum exclusiveMinimum maximum exclusiveMaximum contentMediaType contentEncoding default!
    minItems maxItems uniqueItems items:schema prefixItems:[schema] contains:schema minContains maxContains
    unevaluatedItems:schema minProperties maxProperties required dependentRequired! propertyNames:schema
    additionalProperties:schema unevaluatedProperties:schema properties:{schema} patternProperties:{schema}
    dependentSchemas:{schema} discriminator:discriminator allOf:[schema] anyOf:[schema] oneOf:[schema] not:schema
    if:schema then:schema else:schema $defs:{schema} xml! example! examples!`,
  discriminator: 'propertyName mapping!',
} as const

export type PartKind = keyof typeof table

interface Key {
  name: string
  /** Whether the value of the key is plain, one object, a list of objects or a map of objects. */
  holds: 'value' | 'one' | 'list' | 'names'
  kind: PartKind | undefined
}

function parse(row: string): Map<string, Key> {
  return new Map(
    row.split(/\s+/).map((word) => {
      const [, name = '', , shape = ''] = /^([^:!]+)(!|:(.+))?$/.exec(word) ?? []
      const kind = /\w+/.exec(shape)?.[0] as PartKind | undefined
      const holds =
        kind === undefined ? 'value' : shape.startsWith('[') ? 'list' : shape.startsWith('{') ? 'names' : 'one'
      return [name, { name, holds, kind }]
    }),
  )
}

export const grammar = new Map(Object.entries(table).map(([kind, row]) => [kind as PartKind, parse(row)]))

export const extensionKeys = [...grammar].flatMap(([kind, keys]) =>
  [...keys.keys()].filter((name) => name.startsWith('x-')).map((name) => ({ name, kind })),
)

export interface ContractPart {
  kind: PartKind
  node: Record<string, unknown>
  at: Path
}

/**
 * Yields every object of the contract whose kind is in the table, with its kind and path. Does not
 * follow $refs.
 */
export function* partsOf(document: ContractDocument): Generator<ContractPart> {
  yield* walk('document', document, [])
}

export function* walk(kind: PartKind, node: unknown, at: Path): Generator<ContractPart> {
  if (!isObject(node)) return
  yield { kind, node, at }
  for (const [name, value] of Object.entries(node)) {
    const key = grammar.get(kind)?.get(name)
    if (key?.kind === undefined) continue
    if (key.holds === 'one') yield* walk(key.kind, value, [...at, name])
    else if (key.holds === 'list' && Array.isArray(value)) {
      for (const [index, item] of value.entries()) yield* walk(key.kind, item, [...at, name, index])
    } else if (key.holds === 'names' && isObject(value)) {
      for (const [each, item] of Object.entries(value)) yield* walk(key.kind, item, [...at, name, each])
    }
  }
}

/**
 * Yields the keys of the object that the table does not list, with the path of each key. In a map,
 * yields only names with the prefix x-. Maps in `freeNames` may contain any name.
 */
export function* unknownKeys({ kind, node, at }: ContractPart): Generator<{ name: string; at: Path }> {
  const keys = grammar.get(kind)
  for (const [name, value] of Object.entries(node)) {
    const key = keys?.get(name)
    if (key === undefined) yield { name, at: [...at, name] }
    else if (key.holds === 'names' && !freeNames.has(name) && isObject(value)) {
      for (const each of Object.keys(value).filter((candidate) => /^x-/i.test(candidate))) {
        yield { name: each, at: [...at, name, each] }
      }
    }
  }
}

const freeNames = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas', 'headers', 'x-headers'])
