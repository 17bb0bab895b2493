// Adds the installation's custom attributes to the served contract. Schemas to extend
// have the mark `x-entity`, so this file contains no entity names.
import { componentOf, type OpenSchema } from '../../contract/input/open-schema.ts'
import { plainMarkdown } from '../../kernel/values/format.ts'
import type { Attribute, AttributeSet, EntityType } from './attribute-set.ts'
import { inputSchema, outputSchema, requiredCodes } from './schemas.ts'
import { withValueTypes } from './types.ts'

interface Document {
  paths: Record<string, Record<string, unknown>>
  components: {
    schemas: Record<string, OpenSchema>
    parameters: Record<string, { name?: string; schema?: OpenSchema }>
  }
}

const entityIn = (schema: OpenSchema | undefined): EntityType | undefined =>
  schema?.['x-entity'] as EntityType | undefined

/**
 * Returns the schemas that have a `custom_attributes` property. `values` is the schema name of that
 * property, and `entity` is its `x-entity` mark.
 */
function holders(document: Document): { name: string; holder: OpenSchema; values: string; entity: EntityType }[] {
  return Object.entries(document.components.schemas).flatMap(([name, holder]) => {
    const $ref = (holder.properties?.custom_attributes as OpenSchema | undefined)?.$ref
    const entity = $ref === undefined ? undefined : entityIn(componentOf(document, $ref) as OpenSchema)
    return $ref === undefined || !entity ? [] : [{ name, holder, values: $ref.split('/').at(-1) ?? '', entity }]
  })
}

const fieldsByContract = new WeakMap<object, Map<EntityType, ReadonlySet<string>>>()

/** Returns the names of an entity's built-in fields in replies and bodies. */
export function entityFields(contract: object, entity: EntityType): ReadonlySet<string> {
  const found = fieldsByContract.get(contract) ?? new Map<EntityType, ReadonlySet<string>>()
  fieldsByContract.set(contract, found)
  const fields =
    found.get(entity) ??
    new Set(
      holders(contract as Document)
        .filter((each) => each.entity === entity)
        .flatMap(({ holder }) => Object.keys(holder.properties ?? {})),
    )
  found.set(entity, fields)
  return fields
}

function createBodySchemas(document: Document): Set<string> {
  const names = Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .filter((operation): operation is { operationId: string; requestBody?: unknown } =>
      /^create[A-Z]/.test((operation as { operationId?: string } | null)?.operationId ?? ''),
    )
    .flatMap(({ requestBody }) => [...JSON.stringify(requestBody ?? {}).matchAll(/#\/components\/schemas\/(\w+)/g)])
  return new Set(names.map(([, name = '']) => name))
}

/**
 * Returns a copy of the contract with the custom attributes added. Returns the contract itself when
 * no entity has custom attributes.
 */
export function withCustomAttributes<D extends object>(contract: D, { own }: AttributeSet): D {
  if ([...own.values()].every((attributes) => attributes.length === 0)) return contract
  const copy = structuredClone(contract) as D & Document
  const { schemas, parameters } = copy.components
  const created = createBodySchemas(copy)
  const inputs = new Set<string>()
  for (const { name, holder, values, entity } of holders(copy)) {
    // Only schemas of request bodies refuse unknown properties. Schemas of replies need no change
    // here.
    if (holder.additionalProperties !== false) continue
    inputs.add(values)
    const needed = requiredCodes(own.get(entity) ?? [])
    if (!created.has(name) || needed.length === 0) continue
    const stricter = values.replace(/Input$/, 'Create')
    schemas[stricter] = { ...schemas[values], required: needed }
    inputs.add(stricter)
    holder.properties = {
      ...holder.properties,
      custom_attributes: { $ref: `#/components/schemas/${stricter}` } as object,
    }
    holder.required = [...new Set([...(holder.required ?? []), 'custom_attributes'])]
  }
  for (const [name, schema] of Object.entries(schemas)) {
    const entity = entityIn(schema)
    if (!entity) continue
    const attributes = own.get(entity) ?? []
    const { properties, ...rest } = inputs.has(name) ? inputSchema(attributes, true) : outputSchema(attributes)
    const required = schema.required ?? rest.required
    const examples = [exampleOf(attributes, inputs.has(name))]
    schemas[name] = { ...schema, ...rest, ...(required && { required }), properties: properties ?? {}, examples }
  }
  for (const { name, holder, entity } of holders(copy)) {
    const values = exampleOf(own.get(entity) ?? [], holder.additionalProperties === false)
    fillExamples(holder, values)
    fillExamplesAround(schemas, `#/components/schemas/${name}`, values)
  }
  for (const { schema } of Object.values(parameters)) extendParameter(schema, own)
  return copy
}

/**
 * Returns an example value of each attribute. Examples of bodies leave out choices that have no
 * options yet.
 */
const exampleOf = (attributes: readonly Attribute[], isWritten: boolean): Record<string, unknown> =>
  Object.fromEntries(
    withValueTypes(attributes)
      .map(({ attribute, type }) => [attribute.code, type.example(attribute)] as const)
      .filter(([, value]) => !isWritten || value !== null),
  )

/**
 * Puts the example values into each example that contains `custom_attributes`, or whose schema now
 * requires `custom_attributes`.
 */
function fillExamples(holder: OpenSchema, values: Record<string, unknown>): void {
  for (const example of (holder.examples as Record<string, unknown>[] | undefined) ?? [])
    if ('custom_attributes' in example || holder.required?.includes('custom_attributes'))
      example.custom_attributes = values
}

/** Puts the example values into the examples of schemas with a property that is such a record. */
function fillExamplesAround(
  schemas: Readonly<Record<string, OpenSchema>>,
  $ref: string,
  values: Record<string, unknown>,
): void {
  for (const { properties = {}, examples = [] } of Object.values(schemas))
    for (const [key, property] of Object.entries(properties))
      if ((property as { $ref?: string }).$ref === $ref)
        for (const example of examples as Record<string, Record<string, unknown> | undefined>[])
          if (example[key] && 'custom_attributes' in example[key]) example[key].custom_attributes = values
}

/** Adds the attribute codes to the filter parameter and to the sort parameter of a list. */
function extendParameter(schema: OpenSchema | undefined, own: AttributeSet['own']): void {
  const filtered = entityIn(schema)
  if (schema && filtered) {
    const found = withValueTypes(own.get(filtered) ?? []).filter(({ type }) => type.matches)
    schema.properties = Object.fromEntries(
      found.map(({ attribute, type }) => [
        attribute.code,
        {
          type: 'string',
          maxLength: 2000,
          description: `${plainMarkdown(attribute.name)}: ${type.takes}, separated by commas${type.isOrdered ? '; also with `[gte]`, `[lte]`, `[gt]`, `[lt]`' : ''}`,
        } as object,
      ]),
    )
    // A key with an operator, such as `price][gte` of `custom_attributes[price][gte]`.
    const withOperator = { type: 'string', maxLength: 2000 }
    Object.assign(schema, { patternProperties: { '^[a-z0-9_]+\\]\\[(not|null|gte?|lte?)$': withOperator } })
    schema.additionalProperties = false
  }
  const names = schema?.items as (OpenSchema & { enum?: string[] }) | undefined
  const sorted = entityIn(names)
  if (!names?.enum || !sorted) return
  const keys = withValueTypes(own.get(sorted) ?? []).filter(({ type }) => type.sorts)
  const added = keys.map(({ attribute }) => `custom_attributes.${attribute.code}`)
  names.enum = [...names.enum, ...added, ...added.map((name) => `-${name}`)]
}
