// Renders the served contract as a Postman Collection v2.1, which Postman, Bruno, Insomnia and
// Hoppscotch import. openapi-to-postmanv2 is not used: it replaces the examples by random values,
// enables all filters, and takes ten seconds.
import { accessOf } from './markdown.ts'
import { exampleOf } from './page-schema.ts'
import {
  type ListedOperation,
  operationsOf,
  resolveServed,
  type ServedBody,
  type ServedDocument,
  type ServedOperation,
  type ServedParameter,
  type ServedSchema,
} from './served-document.ts'

interface Entry {
  key: string
  value: string
  description?: string
  disabled?: true
}

/** A field of a form. The user of the client chooses the file of a `file` field. */
type FormEntry = { key: string; description?: string } & ({ type: 'text'; value: string } | { type: 'file'; src: [] })

interface CollectionBody {
  mode: 'raw' | 'urlencoded' | 'formdata'
  raw?: string
  urlencoded?: FormEntry[]
  formdata?: FormEntry[]
  options?: object
}

interface CollectionItem {
  /** The operationId. */
  id: string
  name: string
  event?: object[]
  request: {
    method: string
    header: Entry[]
    url: { raw: string; host: string[]; path: string[]; query: Entry[]; variable: Entry[] }
    body?: CollectionBody
    /** Absent if the request inherits the bearer token of the collection. */
    auth?: { type: 'noauth' }
    description: string
  }
  response: []
}

export interface PostmanCollection {
  info: { name: string; description: string; version: string; schema: string }
  auth: object
  variable: { key: string; value: string }[]
  item: { name: string; description: string; item: CollectionItem[] }[]
}

const usage = `Set the variables \`email\` and \`password\` of this collection, and send **Sign in**. Its script stores the
token in the variable \`token\`, which the other requests send.

Query parameters and optional headers are switched off. Their values are the examples of the contract, as are
the bodies and the ids in paths.`

/** The variables for the body of the sign-in request. */
const credentials = { email: '{{email}}', password: '{{password}}' }

/** The name is not `data`, because Postman has a global variable with that name. */
const storeToken = [
  'const reply = pm.response.json()',
  "if (reply.data) pm.collectionVariables.set('token', reply.data.token)",
]

/** Returns the collection. */
export function postmanCollectionOf(document: ServedDocument, { baseUrl }: { baseUrl: string }): PostmanCollection {
  const { info, tags } = document
  const operations = operationsOf(document)
  const signIn = operations.find(({ operation }) => isSignIn(operation))
  const { email = '' } = (signIn && (bodyExample(document, signIn.operation)?.example as { email?: string })) ?? {}
  return {
    info: {
      name: info.title,
      description: `${info.summary ?? ''}\n\n${usage}`,
      version: info.version,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{token}}', type: 'string' }] },
    variable: [
      { key: 'baseUrl', value: baseUrl },
      { key: 'email', value: email },
      { key: 'password', value: '' },
      { key: 'token', value: '' },
    ],
    item: tags.map(({ name, description = '' }) => ({
      name,
      description,
      item: operations.filter(({ operation }) => operation.tags[0] === name).map((each) => itemOf(document, each)),
    })),
  }
}

const isSignIn = ({ operationId }: ServedOperation): boolean => operationId === 'login'

/** Public reads that can reply 401, such as the metrics, are not anonymous: they accept a token. */
const isAnonymous = (method: string, { security, responses }: ServedOperation): boolean =>
  security?.length === 0 && (method !== 'get' || responses['401'] === undefined)

function itemOf(document: ServedDocument, { path, method, operation }: ListedOperation): CollectionItem {
  const parameters = (operation.parameters ?? []).map((each) => resolveServed<ServedParameter>(document, each))
  const body = bodyOf(document, operation)
  const type = body?.mode === 'raw' ? [{ key: 'Content-Type', value: 'application/json' }] : []
  const headers = parameters.filter((each) => each.in === 'header').flatMap((each) => entriesOf(document, each))
  return {
    id: operation.operationId,
    name: operation.summary,
    ...(isSignIn(operation) && {
      event: [{ listen: 'test', script: { type: 'text/javascript', exec: storeToken } }],
    }),
    request: {
      method: method.toUpperCase(),
      header: [{ key: 'Accept', value: acceptedBy(document, operation) }, ...type, ...headers],
      url: urlOf(document, path, parameters),
      ...(body && { body }),
      ...(isAnonymous(method, operation) && { auth: { type: 'noauth' as const } }),
      description: [operation.description ?? '', accessOf(operation)].filter((part) => part !== '').join('\n\n'),
    },
    response: [],
  }
}

/** Returns the media type to request: JSON if the operation has it. */
function acceptedBy(document: ServedDocument, { responses }: ServedOperation): string {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const types = Object.keys((success && resolveServed<ServedBody>(document, success).content) ?? {})
  const [first = 'application/json'] = types
  return types.includes('application/json') ? 'application/json' : first
}

function urlOf(document: ServedDocument, path: string, parameters: ServedParameter[]) {
  const variable: Entry[] = []
  // Postman variables replace whole segments, so `{operationId}.md` becomes the variable
  // `operationId.md`.
  const segments = path.split('/').slice(1)
  const shown = segments.map((segment) => {
    const [braced, name] = /\{(\w+)\}/.exec(segment) ?? []
    const parameter = parameters.find((each) => each.in === 'path' && each.name === name)
    if (braced === undefined || parameter === undefined) return segment
    const key = segment.replace(braced, parameter.name)
    const [{ value = '' } = {}] = entriesOf(document, parameter)
    variable.push({
      key,
      value: segment.replace(braced, value || parameter.name),
      ...described(parameter.description),
    })
    return `:${key}`
  })
  const query = parameters.filter((each) => each.in === 'query').flatMap((each) => entriesOf(document, each))
  const sent = query.filter(({ disabled }) => !disabled).map(({ key, value }) => `${key}=${value}`)
  const raw = `{{baseUrl}}/${shown.join('/')}${sent.length > 0 ? `?${sent.join('&')}` : ''}`
  return { raw, host: ['{{baseUrl}}'], path: shown, query, variable }
}

const described = (description?: string): { description?: string } =>
  description === undefined ? {} : { description: description.replace(/\s+/g, ' ').trim() }

/**
 * Returns the entries of a parameter: one for each property of a `deepObject`, otherwise a single
 * one.
 */
function entriesOf(
  { components }: ServedDocument,
  { name, in: place, required, description, example, schema = {} }: ServedParameter,
): Entry[] {
  const state = required || place === 'path' ? {} : { disabled: true as const }
  if (schema.type === 'object')
    return Object.entries(schema.properties ?? {}).map(([key, each]) => ({
      key: `${name}[${key}]`,
      value: '',
      ...described(each.description ?? description),
      ...state,
    }))
  // Each request needs a new Idempotency-Key, so Postman generates it.
  const preset = typeof schema.default === 'number' ? schema.default : undefined
  const shown = example ?? preset ?? exampleOf(withoutProse(schema), components)
  const value = name === 'Idempotency-Key' ? '{{$guid}}' : textOf(shown)
  return [{ key: name, value, ...described(description), ...state }]
}

/** Returns a schema without descriptions, because `exampleOf` uses them as examples of texts. */
const withoutProse = ({ items, ...schema }: ServedSchema): ServedSchema => ({
  ...schema,
  ...(items && { items: withoutProse(items) }),
  description: '',
})

const textOf = (value: unknown): string =>
  Array.isArray(value) ? value.map(textOf).join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value)

/** Returns the media type of a body, JSON before lines and forms, with its schema and example. */
function bodyExample(document: ServedDocument, { requestBody }: ServedOperation) {
  const { content = {} } = requestBody ? resolveServed<ServedBody>(document, requestBody) : {}
  const types = Object.keys(content)
  const jsons = ['application/json', ...types].filter((each) => each.endsWith('json'))
  const type = jsons.find((each) => types.includes(each)) ?? types[0]
  if (type === undefined) return undefined
  const { schema = {}, example } = content[type] ?? {}
  return { type, schema: resolveServed(document, schema), example: example ?? exampleOf(schema, document.components) }
}

function bodyOf(document: ServedDocument, operation: ServedOperation): CollectionBody | undefined {
  const found = bodyExample(document, operation)
  if (found === undefined) return undefined
  const { type, schema, example } = found
  if (type.endsWith('json')) {
    const shown = isSignIn(operation) ? { ...(example as object), ...credentials } : example
    return { mode: 'raw', raw: JSON.stringify(shown, null, 2), options: { raw: { language: 'json' } } }
  }
  const fields = Object.entries((example ?? {}) as Record<string, unknown>).map(([key, value]): FormEntry => {
    const property = resolveServed(document, schema.properties?.[key] ?? {})
    const about = { key, ...described(property.description) }
    return isFile(document, property)
      ? { ...about, type: 'file', src: [] }
      : { ...about, type: 'text', value: textOf(value) }
  })
  return type === 'multipart/form-data'
    ? { mode: 'formdata', formdata: fields }
    : { mode: 'urlencoded', urlencoded: fields }
}

/** Returns whether a form field is a file or a list of files. */
function isFile(document: ServedDocument, schema: ServedSchema): boolean {
  const { format, items } = resolveServed(document, schema)
  return format === 'binary' || (items !== undefined && isFile(document, items))
}
