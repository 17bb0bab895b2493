// Every id in a body that names a record with external ids can be an external id instead. The walk
// finds the ids by their names, so a new body cannot be forgotten.
import { describe, expect, it } from 'vitest'
import { bodySchema, facts, follow, type SchemaObject, typesOf } from '../support/schema.ts'

/** Why an id stays an id, by the end of its place. */
const reasons: readonly [place: RegExp, reason: string][] = [
  [/\b(where|filter|filters)\./, 'a condition, which has `external_id` as a filter of its own'],
  [/\b(file_id|image_file_id|file_ids|attachment_ids|logo(_image)?\.id|file\.id)$/, 'files have no external ids'],
  [/\bimport_id$/, 'imports have no external ids'],
  [/\bmove_leads_to_stage_id$/, 'stages have no external ids'],
  [/\bafter_event_id$/, 'a position in the event log'],
  [/\b(products|items|inventories|stages|options|attributes|participants)\.id$/, 'a row of the record itself'],
  [/^unmerge(Person|Organization)\.id$/, 'a merged record, whose external ids the other record has'],
  [/^bulkWrite\.(\d+\.)?id$/, '`external_id` is beside it'],
]

/** Returns the places of a body whose name says that they contain ids, and that take only ids. */
function bareIds(shape: SchemaObject | undefined, place: string, above: readonly SchemaObject[] = []): string[] {
  const schema = follow(shape)
  if (above.includes(schema) || schema['x-reference'] !== undefined) return []
  const inside = [...above, schema]
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const at = `${place}.${name}`
    return [...(/(^|_)ids?$/.test(name) && takesIds(each) ? [at] : []), ...bareIds(each, at, inside)]
  })
  return [...own, ...[schema.items, ...parts].flatMap((each) => (each ? bareIds(each, place, inside) : []))]
}

/** Returns whether a value, or an entry of a list, can only be a number. */
function takesIds(shape: SchemaObject | undefined): boolean {
  const schema = follow(shape)
  if (schema['x-reference'] !== undefined) return false
  const parts = [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]
  return typesOf(schema).includes('integer') || parts.some((each) => each !== undefined && takesIds(each))
}

const found = new Set(facts.flatMap(([id]) => (bodySchema(id) ? bareIds(bodySchema(id), id) : [])))
const reasonOf = (place: string): string | undefined => reasons.find(([pattern]) => pattern.test(place))?.[1]

describe('an id in a body', () => {
  it('can be an external id, unless a reason is listed', () => {
    expect([...found].filter((place) => reasonOf(place) === undefined)).toEqual([])
  })

  it.each(reasons)('is only an id at %s', (pattern) => {
    expect([...found].filter((place) => pattern.test(place))).not.toEqual([])
  })

  it('is found in nested objects, lists and unions', () => {
    const item = { type: 'object', properties: { tag_ids: { type: 'array', items: { type: 'integer' } } } }
    const body = { type: 'object', properties: { lines: { anyOf: [{ type: 'array', items: item }] } } }
    expect(bareIds(body as SchemaObject, 'create')).toEqual(['create.lines.tag_ids'])
  })
})
