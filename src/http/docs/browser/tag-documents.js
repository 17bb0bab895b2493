// @ts-check
// Loads the document of a tag and resolves its operations. Replaces the resolver of Swagger UI,
// which traverses the whole document for each operation.
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
 * Returns a copy of a schema in which each `allOf` with one entry is merged into its parent.
 * OpenAPI 3.0 needs such an `allOf` for a `$ref` with a description. Swagger UI renders the merged
 * form as one schema.
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
 * Returns a copy with `$ref`s replaced by their schemas. Recursive `$ref`s stay.
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

/** @type {Map<string, Json>} The schemas of the loaded tags by name. */
const definitions = new Map()

/** Returns a schema of the loaded tags. @param {string} name @returns {Json | null} */
export const definitionOf = (name) => definitions.get(name) ?? null

/**
 * Returns an operation in the form that Swagger UI renders. Parameters and forms have no `$ref`s.
 * JSON schemas keep their `$ref`s, which are resolved when the reader opens them.
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
    // Swagger UI marks a reply as undocumented if `responses` has no entry for it.
    responses: { ...responses, default: { description: 'A problem document.' } },
  }
}
