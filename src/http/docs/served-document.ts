// The parts of the served contract that the documents beside it are rendered from.

export interface ServedSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, ServedSchema>
  required?: string[]
  items?: ServedSchema
  anyOf?: ServedSchema[]
  oneOf?: ServedSchema[]
  allOf?: ServedSchema[]
  examples?: unknown[]
  [keyword: string]: unknown
}

interface Media {
  schema?: ServedSchema
}

interface Reference {
  $ref?: string
}

export interface ServedBody extends Reference {
  description?: string
  required?: boolean
  content?: Record<string, Media>
}

export interface ServedParameter extends Reference {
  name: string
  in: string
  required?: boolean
  description?: string
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

export interface ServedDocument {
  info: { title: string; version: string; summary?: string; description?: string; license?: { name: string } }
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, ServedOperation>>
  webhooks: Record<string, { post: ServedOperation }>
  components: { schemas: Record<string, ServedSchema> } & Record<string, Record<string, unknown>>
  /** The type of record of each event, by the name of the event. */
  'x-event-names': Record<string, string>
}

/** Returns `part`, or the component that its $ref names with the keys beside the $ref. */
export function resolveServed<T extends Reference>({ components }: ServedDocument, part: T): T {
  const [, section = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref ?? '') ?? []
  return part.$ref === undefined ? part : { ...(components[section]?.[name] as T), ...part, $ref: undefined }
}
