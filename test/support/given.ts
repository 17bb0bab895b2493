// Creates records for tests through the API, from the examples of the contract and with unique
// values. `given(server.admin).lead({ title: 'Big one' })` returns the lead.
import type { Body, Data, OperationId } from '../../src/contract/types.ts'
import type { Caller } from './app.ts'
import {
  bodySchema,
  creatorOfUpsert,
  entityOf,
  fact,
  follow,
  isFile,
  isReference,
  requiredOf,
  type SchemaObject,
  sample,
  takesFormOnly,
  typesOf,
} from './schema.ts'

type Json = Record<string, unknown>

let count = 0

/** Returns a number that no other call returns. */
export const unique = (): number => ++count

/** Restarts `unique`, so that a second server gets the same numbers as the first. */
export const restartUnique = (): void => {
  count = 0
}

/** Returns the id of a record to refer to, or undefined to omit the reference. */
export type Known = (entity: string) => number | undefined

/**
 * Returns a valid body of an operation, from its example. `required` keeps only required
 * properties. References become existing ids, or are omitted if there are none.
 */
export function validBody(operation: string, known: Known, part: 'example' | 'required' = 'example'): Json | undefined {
  const schema = bodySchema(operation)
  if (!schema) return undefined
  // An upsert of a new record needs what its creation needs.
  const creator = creatorOfUpsert(operation)
  if (creator !== undefined) {
    const body = validBody(creator, known, part) ?? {}
    return Object.fromEntries(Object.entries(body).filter(([name]) => schema.properties?.[name] !== undefined))
  }
  const example = sample(schema) as Json
  const needed = requiredOf(schema)
  // Its other values come from a record in the path, which may lack some.
  const isFilled = needed.length === 0 && fact(operation).method === 'post' && fact(operation).status === 201
  const body =
    part === 'example' || isFilled ? example : Object.fromEntries(needed.map((name) => [name, example[name]]))
  // A JSON body cannot contain files.
  const sent = Object.entries(body).filter(([name]) => takesFormOnly(operation) || !isFile(schema.properties?.[name]))
  return fill(Object.fromEntries(sent), schema, known) as Json
}

/** Returns the value with existing ids and unique texts. */
export function fill(value: unknown, shape: SchemaObject | undefined, known: Known): unknown {
  const schema = choose(value, follow(shape))
  if (Array.isArray(value)) return value.map((each) => fill(each, schema.items, known))
  if (typeof value !== 'object' || value === null) return value
  const filled: Json = {}
  for (const [name, each] of Object.entries(value)) {
    const property = follow(schema.properties?.[name])
    if (isReference(name, property) || name === 'entity_id') {
      // `entity_type` names the type of the record. Without it, the example is a workflow for
      // leads.
      const kind = name === 'entity_id' ? String((value as Json).entity_type ?? 'leads') : (entityOf(name) ?? '')
      const id = known(kind)
      if (id !== undefined) filled[name] = Array.isArray(each) ? [id] : id
    } else filled[name] = typeof each === 'string' ? distinct(name, each, property) : fill(each, property, known)
  }
  return filled
}

function choose(value: unknown, schema: SchemaObject): SchemaObject {
  const kind = Array.isArray(value) ? 'array' : 'object'
  return (schema.anyOf ?? schema.oneOf ?? []).map(follow).find((branch) => typesOf(branch).includes(kind)) ?? schema
}

function distinct(name: string, text: string, schema: SchemaObject): string {
  if (/email$/.test(String(schema.format))) return `person${unique()}@example.com`
  if (schema.format === 'phone') return `+1 202 ${String(unique()).padStart(7, '0')}`
  if (name === 'code' && String(schema.pattern).includes('_')) return `${text}_${unique()}`
  return ['name', 'title', 'sku'].includes(name) && !schema.enum ? `${text} ${unique()}` : text
}

/**
 * Returns the ids of seeded records, for tests in which the references do not matter. The stage is
 * "Won".
 */
export const seeded: Known = (entity) =>
  entity === 'stages' ? 5 : ['users', 'roles', 'sources', 'types', 'pipelines'].includes(entity) ? 1 : undefined

/** Returns functions that create one record each. The given changes override the example. */
export function given(caller: Caller) {
  const maker =
    <O extends OperationId>(operation: O) =>
    async (changes: Partial<Body<O>> = {}): Promise<Data<O>> => {
      const { status, body, text } = await caller.post(`/${fact(operation).path}`, {
        ...validBody(operation, seeded),
        ...changes,
      })
      if (status !== 201) throw new Error(`${operation} answered ${status}: ${text}`)
      return body.data as Data<O>
    }
  return {
    tag: maker('createTag'),
    source: maker('createSource'),
    type: maker('createType'),
    pipeline: maker('createPipeline'),
    organization: maker('createOrganization'),
    person: maker('createPerson'),
    product: maker('createProduct'),
    warehouse: maker('createWarehouse'),
    /** Creates a person for the quote, unless `person_id` is given. */
    quote: async (changes: Partial<Body<'createQuote'>> = {}) =>
      maker('createQuote')({
        items: [],
        ...changes,
        person_id: changes.person_id ?? (await maker('createPerson')()).id,
      }),
    lead: maker('createLead'),
    activity: maker('createActivity'),
    role: maker('createRole'),
    group: maker('createGroup'),
    user: maker('createUser'),
    token: maker('createToken'),
  }
}
