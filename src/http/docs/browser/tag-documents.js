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

/**
 * Returns a copy without references. A schema inside itself stays a reference. A reference with a
 * description, which OpenAPI 3.0 writes as `allOf`, becomes one schema.
 * @param {any} value @param {Json} schemas @param {readonly string[]} above
 * @returns {any}
 */
export function resolved(value, schemas, above = []) {
  if (Array.isArray(value)) return value.map((each) => resolved(each, schemas, above))
  if (typeof value !== 'object' || value === null) return value
  if (typeof value.$ref === 'string') {
    const name = value.$ref.slice(value.$ref.lastIndexOf('/') + 1)
    if (above.includes(name) || schemas[name] === undefined) return value
    return { ...resolved(schemas[name], schemas, [...above, name]), $$ref: value.$ref }
  }
  const copied = Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === 'example' || key === 'enum' ? each : resolved(each, schemas, above),
    ]),
  )
  if (copied.allOf?.length !== 1) return copied
  const { allOf, ...own } = copied
  return { ...allOf[0], ...own }
}
