// @ts-check
// Loads the document of a tag and resolves its operations. Replaces the resolver of Swagger UI,
// which traverses the whole document for each operation.
import { base } from './dom.js'
import { merged } from './schema-words.js'

/** @typedef {Record<string, any>} Json */

/**
 * @typedef {object} Operation An operation of a tag document.
 * @property {string} path
 * @property {string} method
 * @property {Json} operation Its parameters have no `$ref`s.
 * @property {Json} schemas The schemas of the document by name.
 * @property {Json[]} commonErrors Errors that most operations have.
 */

/** @type {Map<string, Promise<Json>>} */
const documents = new Map()

/** The times, in milliseconds, after which a refused request is sent again. */
const retries = [1000, 2000]

/** @param {string} url @returns {Promise<Json>} */
async function fetched(url, attempt = 0) {
  const response = await fetch(url)
  if (response.ok) return response.json()
  const wait = retries[attempt]
  // 429 and 503: the server has too much to do.
  if (wait === undefined || ![429, 503].includes(response.status))
    throw new Error(`The server answered ${response.status}.`)
  await new Promise((resolve) => setTimeout(resolve, wait))
  return fetched(url, attempt + 1)
}

/** @param {string} slug @returns {Promise<Json>} */
export function loadTag(slug) {
  const known = documents.get(slug)
  if (known) return known
  const loading = fetched(`${base}/tags/${slug}.json`)
  loading.catch(() => documents.delete(slug))
  documents.set(slug, loading)
  return loading
}

/** @param {string} slug @param {string} id @returns {Promise<Operation>} */
export async function loadOperation(slug, id) {
  const { paths, components, 'x-common-errors': commonErrors } = await loadTag(slug)
  for (const [path, item] of Object.entries(paths))
    for (const [method, found] of Object.entries(/** @type {Json} */ (item)))
      if (found.operationId === id) {
        const { schemas } = components
        const parameters = found.parameters.map((/** @type {Json} */ each) => ({
          ...each,
          schema: resolved(each.schema, schemas),
        }))
        return { path, method, operation: { ...found, parameters }, schemas, commonErrors }
      }
  throw new Error('The contract has no such operation any more. Reload the page.')
}

/**
 * Returns a copy of a schema with `$ref`s replaced by their schemas. Recursive `$ref`s become any
 * value.
 * @param {any} value @param {Json} schemas @param {number} depth @returns {any}
 */
export function resolved(value, schemas, depth = 0) {
  if (Array.isArray(value)) return value.map((each) => resolved(each, schemas, depth))
  if (typeof value !== 'object' || value === null) return value
  if (depth > 6) return {}
  return Object.fromEntries(
    Object.entries(merged(value, schemas)).map(([key, each]) => [
      key,
      key === 'example' || key === 'enum' ? each : resolved(each, schemas, depth + 1),
    ]),
  )
}
