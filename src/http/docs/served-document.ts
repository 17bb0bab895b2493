// The types of the served contract, as far as the documentation uses them, and functions to read
// it.

export interface ServedSchema {
  $ref?: string
  type?: string | string[]
  nullable?: boolean
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  example?: unknown
  examples?: unknown[]
  minimum?: number
  exclusiveMinimum?: number | boolean
  items?: ServedSchema
  required?: string[]
  properties?: Record<string, ServedSchema>
  additionalProperties?: boolean | ServedSchema
  anyOf?: ServedSchema[]
  oneOf?: ServedSchema[]
  allOf?: ServedSchema[]
  [keyword: string]: unknown
}

interface Reference {
  $ref?: string
}

interface Media {
  schema?: ServedSchema
  example?: unknown
}

/** A request body or a response. */
export interface ServedBody extends Reference {
  description?: string
  required?: boolean
  content?: Record<string, Media>
  headers?: Record<string, unknown>
}

export interface ServedParameter extends Reference {
  name: string
  in: string
  required?: boolean
  description?: string
  example?: unknown
  schema?: ServedSchema
}

export interface ServedOperation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  security?: unknown[]
  parameters?: ServedParameter[]
  requestBody?: ServedBody
  responses: Record<string, ServedBody>
  'x-permission'?: string
  'x-ability'?: string
  'x-events'?: string[]
}

export interface ServedComponents {
  schemas: Record<string, ServedSchema>
  [section: string]: Record<string, unknown>
}

export interface ServedDocument {
  info: { title: string; version: string; summary?: string; description?: string; license?: { name: string } }
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, ServedOperation>>
  webhooks: Record<string, { post: ServedOperation }>
  components: ServedComponents
  /** The record type of each event, by event name. */
  'x-event-names': Record<string, string>
}

export interface ListedOperation {
  path: string
  /** In lower case. */
  method: string
  operation: ServedOperation
}

/** Returns all operations in the order of the contract. */
export const operationsOf = ({ paths }: Pick<ServedDocument, 'paths'>): ListedOperation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )

/**
 * Returns `part` with its `$ref` resolved. Keys beside the `$ref` override those of the component.
 */
export function resolveServed<T extends Reference>({ components }: Pick<ServedDocument, 'components'>, part: T): T {
  const [, section = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref ?? '') ?? []
  return part.$ref === undefined ? part : { ...(components[section]?.[name] as T), ...part, $ref: undefined }
}

/** Returns the schemas that a value refers to, directly or indirectly, sorted by name. */
export function schemasUsedBy(value: unknown, { schemas }: ServedComponents): Record<string, ServedSchema> {
  const found = new Map<string, ServedSchema>()
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return
    const { $ref } = part as Reference
    const name = typeof $ref === 'string' ? $ref.slice($ref.lastIndexOf('/') + 1) : ''
    const schema = schemas[name]
    if (schema !== undefined && !found.has(name)) {
      found.set(name, schema)
      visit(schema)
    }
    for (const each of Object.values(part)) visit(each)
  }
  visit(value)
  return Object.fromEntries([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
}
