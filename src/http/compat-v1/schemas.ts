// Looks up the schemas of the contract for the compatibility layer: the fields of canonical bodies
// and replies with their types, and the query parameters.
import { componentOf } from '../../contract/input/open-schema.ts'
import type { OperationFact } from '../../contract/operations.gen.ts'
import { type FieldNames, fieldNames } from './names.ts'

/** A schema of the contract with unresolved `$ref`s. */
export interface ContractSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  'x-value'?: string
  /** The entity whose custom attributes the object has. */
  'x-entity'?: string
  properties?: Record<string, ContractSchema>
  required?: string[]
  items?: ContractSchema
  enum?: readonly unknown[]
  anyOf?: ContractSchema[]
  oneOf?: ContractSchema[]
}

interface ContractParameter {
  $ref?: string
  name: string
  in: string
  schema?: ContractSchema
}

interface ContractOperation {
  parameters?: ContractParameter[]
  requestBody?: { content: Record<string, { schema?: ContractSchema }> }
  responses: Record<string, { content?: Record<string, { schema?: ContractSchema }> }>
}

export interface ContractSchemas {
  /** Returns the schema of the JSON body, or undefined. */
  body(fact: OperationFact): ContractSchema | undefined
  /** Returns the schema of the successful JSON reply, or undefined for a download. */
  reply(fact: OperationFact): ContractSchema | undefined
  /** Returns the names of the query parameters. */
  parameters(fact: OperationFact): ReadonlySet<string>
  /** Returns the sort names of a list. Empty when the operation has no `sort`. */
  sortKeys(fact: OperationFact): ReadonlySet<string>
  /** Returns the entity whose custom attributes can filter the list. */
  customEntity(fact: OperationFact): string | undefined
  /** Returns the branches of a union, or the schema itself, with `$ref`s resolved. */
  branches(schema: ContractSchema): readonly ContractSchema[]
  /** Returns the fields of these schemas that have another name in version 1. */
  names(branches: readonly ContractSchema[]): RenamedFields
  /** Returns the fields of the listed records that have another name in version 1. */
  listedNames(fact: OperationFact): RenamedFields
}

/** The fields that have another name in version 1, for both directions. */
export interface RenamedFields {
  /** The names of version 1, by canonical name. */
  readonly version1: ReadonlyMap<string, readonly string[]>
  /** The canonical names, by name of version 1. */
  readonly canonical: ReadonlyMap<string, string>
}

const renamedFields = (names: FieldNames): RenamedFields => {
  const version1 = new Map(Object.entries(names).map(([canonical, own]) => [canonical, [own].flat()]))
  const canonical = [...version1].flatMap(([name, others]) => others.map((each) => [each, name] as const))
  return { version1, canonical: new Map(canonical) }
}

const noNames = renamedFields({})

const json = 'application/json'

export function contractSchemas(document: object): ContractSchemas {
  const { paths } = document as { paths: Record<string, Record<string, ContractOperation>> }
  const operationOf = ({ path, method }: OperationFact): ContractOperation => paths[path]?.[method] ?? { responses: {} }
  const follow = <Part extends { $ref?: string }>(part: Part): Part =>
    part.$ref === undefined ? part : follow(componentOf(document, part.$ref) as Part)
  const unions = new WeakMap<ContractSchema, readonly ContractSchema[]>()
  const known = new WeakMap<OperationFact, ReadonlyMap<string, ContractSchema>>()
  const renamed = new Map(
    Object.entries(fieldNames).map(([schema, names]) => [
      componentOf(document, `#/components/schemas/${schema}`),
      renamedFields(names),
    ]),
  )
  const names = (schemas: readonly ContractSchema[]): RenamedFields =>
    schemas.map((each) => renamed.get(each)).find((each) => each) ?? noNames
  const reply = (fact: OperationFact) => operationOf(fact).responses[String(fact.status)]?.content?.[json]?.schema

  function branches(schema: ContractSchema): readonly ContractSchema[] {
    const found = unions.get(schema)
    if (found) return found
    const { anyOf, oneOf } = follow(schema)
    const made = (anyOf ?? oneOf)?.flatMap(branches) ?? [follow(schema)]
    unions.set(schema, made)
    return made
  }

  /** Returns the schemas of the query parameters, by name. */
  function queryOf(fact: OperationFact): ReadonlyMap<string, ContractSchema> {
    const found = known.get(fact)
    if (found) return found
    const sent = (operationOf(fact).parameters ?? []).map(follow).filter((each) => each.in === 'query')
    const made = new Map(sent.map(({ name, schema = {} }) => [name, schema]))
    known.set(fact, made)
    return made
  }

  return {
    branches,
    names,
    listedNames(fact) {
      const items = branches(reply(fact) ?? {}).map(({ properties }) => properties?.data?.items)
      return names(items.flatMap((each) => (each ? branches(each) : [])))
    },
    body: (fact) => operationOf(fact).requestBody?.content[json]?.schema,
    reply,
    parameters: (fact) => new Set(queryOf(fact).keys()),
    sortKeys(fact) {
      const keys = branches(queryOf(fact).get('sort')?.items ?? {}).flatMap((each) => each.enum ?? [])
      return new Set(keys.map((key) => String(key).replace(/^-/, '')))
    },
    customEntity: (fact) => queryOf(fact).get('custom_attributes')?.['x-entity'],
  }
}

export const typesOfSchema = ({ type = [] }: ContractSchema): readonly string[] => [type].flat()
