// The contract as openapi-backend gets it: the request half, with compiled validators that servers of one process share and
// a router that already knows the operation.
import type { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { OpenAPIBackend } from 'openapi-backend'
import { addFormats } from './formats.ts'
import type { Shape } from './normalise.ts'
import type { Parameters } from './query.ts'

export interface Definition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

export interface Matched {
  operationId: string
  path: string
  method: string
  parameters?: { name: string; in: string; schema: Shape }[]
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

const ajvOptions = { strict: false, validateSchema: false, allErrors: true, useDefaults: true, verbose: true } as const

interface Prepared {
  definition: Definition
  bodies: Ajv
  parameters: Ajv
  /** Compiled on first use, by operationId. */
  validators: OpenAPIBackend['validator']['requestValidators']
}

const preparations = new WeakMap<object, Prepared>()

/** What follows from the contract alone. Servers of one process that serve the same contract share it. */
export function prepared(document: object): Prepared {
  const known = preparations.get(document)
  if (known) return known
  const made: Prepared = {
    definition: requestSide(document),
    bodies: addFormats(new Ajv2020({ ...ajvOptions }) as unknown as Ajv),
    parameters: addFormats(new Ajv2020({ ...ajvOptions, coerceTypes: true }) as unknown as Ajv),
    validators: {},
  }
  preparations.set(document, made)
  return made
}

/**
 * What openapi-backend needs: requests only. Replies are checked in replies.ts from the original document, which keeps
 * the recursive reply schemas out of its dereferencing. Lists in the query are split in normalise.ts, hence no `explode`.
 */
function requestSide(document: object): Definition {
  const copy = structuredClone(document) as Definition & {
    components: {
      parameters: Record<string, { explode?: boolean; schema?: Parts & { items?: SortNames } }>
      schemas: object
    }
  }
  for (const path of Object.values(copy.paths)) {
    for (const operation of Object.values(path)) {
      if (typeof operation === 'object' && operation !== null && 'responses' in operation) {
        operation.responses = {}
      }
    }
  }
  for (const parameter of Object.values(copy.components.parameters)) {
    delete parameter.explode
    openSort(parameter.schema?.items)
    openParts(parameter.schema)
  }
  const used = new Set<string>()
  const follow = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, each] of Object.entries(value)) {
      if (key === '$ref' && typeof each === 'string' && each.startsWith('#/components/schemas/')) {
        const name = each.slice('#/components/schemas/'.length)
        if (!used.has(name)) {
          used.add(name)
          follow((copy.components.schemas as Record<string, unknown>)[name])
        }
      } else if (key === 'format' && each === 'binary') {
        // openapi-backend would not miss a file that is required; what it does not know it leaves alone.
        Object.assign(value, { format: 'file' })
      } else follow(each)
    }
  }
  follow(copy.paths)
  follow(copy.components.parameters)
  const schemas = copy.components.schemas as Record<string, unknown>
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name]
  delete (copy.components as Record<string, unknown>).responses
  return copy
}

interface Parts {
  additionalProperties?: unknown
  patternProperties?: Record<string, unknown>
}

/** What one parameter says of further keys, openapi-backend takes for a word about all of the query. */
function openParts(schema: Parts | undefined): void {
  if (typeof schema?.additionalProperties !== 'object') return
  schema.patternProperties = { '': schema.additionalProperties }
  delete schema.additionalProperties
}

interface SortNames {
  enum?: string[]
  [keyword: string]: unknown
}

/** The sort names of a list whose records have custom attributes (`x-entity`) are those of the contract and theirs. */
function openSort(names: SortNames | undefined): void {
  if (names?.enum === undefined || names['x-entity'] === undefined) return
  names.if = { pattern: '^-?custom_attributes\\.[a-z][a-z0-9_]*$' }
  names.else = { enum: names.enum }
  delete names.enum
}

/** openapi-backend lists all operations and builds a RegExp per path on every request; the route already knows. */
export function rememberOperations(api: OpenAPIBackend): Map<string, Matched> {
  const all = api.router.getOperations()
  const byId = new Map(all.map((operation) => [operation.operationId ?? '', operation]))
  api.router.getOperations = () => all
  api.router.getOperation = (id: string) => byId.get(id)
  api.router.matchOperation = ((request: { operationId: string }) => byId.get(request.operationId)) as never
  return byId as unknown as Map<string, Matched>
}

/** The query parameters of every operation, by operationId. */
export const queryParameters = (matched: ReadonlyMap<string, Matched>): ReadonlyMap<string, Parameters> =>
  new Map(
    [...matched].map(([id, { parameters = [] }]) => [
      id,
      Object.fromEntries(parameters.filter((each) => each.in === 'query').map(({ name, schema }) => [name, schema])),
    ]),
  )
