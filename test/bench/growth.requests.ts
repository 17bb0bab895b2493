// The reads of the contract that growth.ts measures: each GET operation with each filter, sort key,
// include and search that its parameters declare.
import { facts, parametersOf, type SchemaObject, sample, typesOf } from '../support/schema.ts'

export interface Read {
  operation: string
  /** The path and query below `/api/admin`. */
  path: string
}

/** Operations without records: pages, files and the contract itself. */
const withoutRecords = /documentation|openapi|asyncapi|arazzo|postman|llms|api-catalog|healthz|readyz|metrics/
/** Needs a cookie or another secret, or is a file. */
const notMeasured = /Export|export|Page$|Script$|Cookie|Session|download|print|Raw$|Calendar$|PublicWebForm/
/**
 * Returns ids of records of the filled folder, which has few pipelines, sources and types. The
 * campaigns 1 and 2 are made by growth.ts.
 */
const idsIn = (path: string): string[] =>
  /campaigns/.test(path) ? ['1', '2'] : /pipelines|sources|types|roles/.test(path) ? ['1'] : ['7']

const words: Record<string, string[]> = {
  // A word of every twelfth title, a word of one record, and a part of most addresses.
  listLeads: ['pumps', 'pilot 777', 'of pumps'],
  kanbanLeads: ['pumps'],
  listPersons: ['dahl', 'person77@'],
  listOrganizations: ['marine'],
  listQuotes: ['quote'],
  listProducts: ['valves'],
  listActivities: ['call', 'call 77'],
  listEmails: ['offer', 'person7', 'example.com'],
  searchRecords: ['pumps', 'dahl', 'marine 77', 'zzzzz'],
  lookupAttributeValues: ['dahl'],
}

const textOf: Record<string, string> = {
  title: 'Pilot of pumps 7',
  name: 'Ada Abel',
  sku: 'SKU-7',
  stage_code: 'new',
  email: 'person7@example.com',
  country: 'US',
  city: 'Austin',
  type: 'call',
}

/** A value in the middle of the filled ones, so that a range is half of the records. */
function sentFor(name: string, schema: SchemaObject): string {
  const [key = ''] = name.split('[')
  if (/_id$|^id$/.test(key)) return '3'
  if (textOf[key] !== undefined) return textOf[key]
  const [type] = typesOf(schema)
  if (type === 'number') return '5000'
  if (/_at$|_date$|_from$|_to$|^start|^end/.test(key)) return '2025-01-01'
  return [sample(schema)].flat().join()
}

const enumOf = (schema: SchemaObject | undefined): string[] =>
  ((schema?.items as SchemaObject | undefined)?.enum as string[] | undefined) ?? []

/** Returns the queries of one operation, the plain one first. */
function queriesOf(id: string): string[] {
  const parameters = parametersOf(id, 'query')
  const always = parameters
    .filter(({ required, name }) => required && name !== 'q')
    .map(({ name, schema }) => `${name}=${sentFor(name, schema)}`)
  const queries: string[] = parameters.some(({ name, required }) => name === 'q' && required) ? [] : ['']
  for (const { name, schema, required } of parameters) {
    if (name === 'q') queries.push(...(words[id] ?? ['acme']).map((word) => `q=${encodeURIComponent(word)}`))
    else if (name === 'sort') {
      const keys = enumOf(schema).filter((key) => !key.startsWith('-'))
      queries.push(...keys.flatMap((key) => [`sort=${key}`, `sort=-${key}`]))
      const word = words[id]?.[0]
      if (word) queries.push(...keys.map((key) => `q=${word}&sort=${key}`))
      if (/Leads$/.test(id)) queries.push('sort=custom_attributes.seats', 'sort=-custom_attributes.region')
    } else if (name === 'include' || name === 'types') {
      const keys = enumOf(schema)
      if (name === 'include') queries.push(...keys.map((key) => `include=${key}`))
    } else if (name === 'custom_attributes') {
      if (/Leads$/.test(id))
        queries.push(
          'custom_attributes[region]=north',
          'custom_attributes[region]=nowhere',
          'custom_attributes[seats]=77',
        )
    } else if (name === 'per_page') queries.push('per_page=100')
    else if (name === 'cursor') queries.push('cursor=')
    else if (!required && !/^(page|count|fields|lang|custom_attributes)$/.test(name))
      queries.push(`${name}=${encodeURIComponent(sentFor(name, schema))}`)
  }
  const needsWord = parameters.some(({ name, required }) => name === 'q' && required)
  return queries
    .filter((query) => !needsWord || query.startsWith('q='))
    .map((query) => [...always, query].filter((part) => part !== '').join('&'))
}

/** Returns the reads of the contract; `only` is a part of operation ids. */
export function readsOf(only: RegExp): Read[] {
  return facts
    .filter(([id, { method, path }]) => method === 'get' && !withoutRecords.test(path) && !notMeasured.test(id))
    .filter(([id, { path }]) => only.test(id) && !/\{(?!id\}|lookup_type\})/.test(path))
    .flatMap(([operation, { path }]) => {
      const place = path.replace('/api/admin', '').replace('{lookup_type}', 'persons')
      const places = idsIn(path).map((id) => place.replace('{id}', id))
      return places.flatMap((each) =>
        queriesOf(operation).map((query) => ({ operation, path: query === '' ? each : `${each}?${query}` })),
      )
    })
}
