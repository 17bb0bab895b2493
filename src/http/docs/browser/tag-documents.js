// @ts-check
// Loads the document of a tag, and resolves one of its operations. It replaces the resolver of
// Swagger UI, which walks through the whole document for each operation.
import { base } from './dom.js'

/** @typedef {Record<string, any>} Json */

/** @type {Map<string, Promise<Json>>} */
const documents = new Map()

/** @param {string} slug @returns {Promise<Json>} */
export function loadTag(slug) {
  const known = documents.get(slug)
  if (known) return known
  const loading = fetch(`${base}/tags/${slug}.json`).then((response) => {
    if (response.ok) return response.json()
    documents.delete(slug)
    throw new Error(`The operations could not be loaded (${response.status}).`)
  })
  documents.set(slug, loading)
  return loading
}

/** @param {string} reference */
const nameOf = (reference) => reference.slice(reference.lastIndexOf('/') + 1)

/**
 * Returns a copy of a schema in which a reference with a description, which OpenAPI 3.0 writes as
 * `allOf`, is a reference with keys beside it. Swagger UI draws these as one schema.
 * @param {any} value @returns {any}
 */
function flattened(value) {
  if (Array.isArray(value)) return value.map(flattened)
  if (typeof value !== 'object' || value === null) return value
  const copied = Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, key === 'example' || key === 'enum' ? each : flattened(each)]),
  )
  if (copied.allOf?.length !== 1) return copied
  const { allOf, ...own } = copied
  return { ...allOf[0], ...own }
}

/**
 * Returns a copy without references. A schema inside itself stays a reference.
 * @param {any} value @param {Json} schemas @param {readonly string[]} above @returns {any}
 */
function resolved(value, schemas, above = []) {
  if (Array.isArray(value)) return value.map((each) => resolved(each, schemas, above))
  if (typeof value !== 'object' || value === null) return value
  const { $ref, ...own } = value
  const copied = Object.fromEntries(
    Object.entries(own).map(([key, each]) => [key, key === 'example' ? each : resolved(each, schemas, above)]),
  )
  if (typeof $ref !== 'string') return copied
  const name = nameOf($ref)
  if (above.includes(name) || schemas[name] === undefined) return value
  return { ...resolved(flattened(schemas[name]), schemas, [...above, name]), ...copied }
}

/** @type {Map<string, Json>} Schemas of the loaded tags by name. */
const definitions = new Map()

/** @param {string} name The schema that a reference of a loaded tag names. @returns {Json | null} */
export const definitionOf = (name) => definitions.get(name) ?? null

/**
 * Returns an operation as Swagger UI draws it. Parameters and forms have no references. Schemas of
 * JSON keep theirs; they are looked up when the reader opens them.
 * @param {string} slug @param {string} path @param {string} method @returns {Promise<Json>}
 */
export async function loadOperation(slug, path, method) {
  const { paths, components } = await loadTag(slug)
  for (const [name, schema] of Object.entries(components.schemas))
    if (!definitions.has(name)) definitions.set(name, flattened(schema))
  const { parameters, requestBody, responses, ...operation } = paths[path][method]
  const content = Object.entries(requestBody?.content ?? {}).map(([type, media]) => {
    const { schema, ...others } = /** @type {Json} */ (media)
    const top = type.endsWith('json') ? { ...definitions.get(nameOf(schema.$ref ?? '')), $$ref: schema.$ref } : null
    return [type, { ...others, schema: schema.$ref && top ? top : resolved(schema, components.schemas) }]
  })
  return {
    ...operation,
    parameters: resolved(flattened(parameters), components.schemas),
    ...(requestBody && { requestBody: { ...requestBody, content: Object.fromEntries(content) } }),
    // A reply without an entry of its own would be called undocumented.
    responses: { ...responses, default: { description: 'A problem document.' } },
  }
}
