// Replaces the `default` response of each operation with the exact statuses of the errors that many
// operations share. `default` keeps openapi.yaml short. Exact statuses give generated clients one
// type per status.
import type { ContractDocument, Operation } from './read.ts'

/**
 * The name of the shared response to which `default` of each operation in openapi.yaml refers. The
 * document that the server publishes has exact statuses and not this response.
 */
export const commonErrors = 'CommonErrors'

const isPublic = ({ security }: Operation): boolean => Array.isArray(security) && security.length === 0

/**
 * For each status: the name of the shared response, and whether an operation can return that
 * response.
 */
const rules: Record<
  string,
  { component: string; applies: (method: string, operation: Operation, isMergeable: boolean) => boolean }
> = {
  308: { component: 'Merged', applies: (_method, _operation, isMergeable) => isMergeable },
  400: { component: 'BadRequest', applies: () => true },
  401: { component: 'Unauthenticated', applies: (_method, operation) => !isPublic(operation) },
  403: { component: 'Forbidden', applies: (_method, operation) => !isPublic(operation) },
  413: { component: 'TooLarge', applies: (method) => method !== 'get' },
  415: { component: 'UnsupportedMediaType', applies: (method) => method !== 'get' },
  422: { component: 'Invalid', applies: () => true },
  429: { component: 'RateLimited', applies: () => true },
  503: { component: 'Unavailable', applies: () => true },
}

/** Returns the responses that replace the `default` response of an operation, keyed by status. */
export function commonErrorsOf(
  { paths }: Pick<ContractDocument, 'paths'>,
  path: string,
  method: string,
  operation: Operation,
): Record<string, { $ref: string }> {
  // A record that can be merged has a redirect at each of its addresses.
  const isMergeable = paths?.[`${/^.*?\{id\}/.exec(path)?.[0]}/merge`] !== undefined
  return Object.fromEntries(
    Object.entries(rules)
      .filter(([, { applies }]) => applies(method, operation, isMergeable))
      .map(([status, { component }]) => [status, { $ref: `#/components/responses/${component}` }]),
  )
}

/** Returns a copy of the document with exact statuses in place of each `default` response. */
export function withCommonErrors(document: ContractDocument): ContractDocument {
  const paths = mapValues(document.paths, (path, item) =>
    mapValues(item, (method, part) => withExactStatuses(document, path, method, part)),
  )
  const components = mapValues(document.components, (section, parts) =>
    section === 'responses' ? mapValues(parts, (name, part) => (name === commonErrors ? undefined : part)) : parts,
  )
  return { ...document, ...(paths && { paths }), ...(components && { components }) } as ContractDocument
}

function withExactStatuses(document: ContractDocument, path: string, method: string, part: unknown): unknown {
  const operation = (part ?? {}) as Operation
  if (operation.responses?.default === undefined) return part
  const { default: _common, ...own } = operation.responses
  return { ...operation, responses: { ...commonErrorsOf(document, path, method, operation), ...own } }
}

/**
 * Returns a copy of `entries` with each value replaced by the result of `change`. Drops an entry if
 * the result is undefined. Returns a value that is not an object unchanged, because the lint
 * reports such a value.
 */
function mapValues<Value>(entries: Record<string, Value> | undefined, change: (key: string, value: Value) => unknown) {
  if (typeof entries !== 'object' || entries === null || Array.isArray(entries)) return entries
  const changed = Object.entries(entries).map(([key, value]) => [key, change(key, value)] as const)
  return Object.fromEntries(changed.filter(([, value]) => value !== undefined))
}
