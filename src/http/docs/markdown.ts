// Renders the contract as Markdown: a page for each operation, and /llms.txt, which lists the
// pages.
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

export const markdownPath = (operationId: string): string => `/api/admin/documentation/operations/${operationId}.md`

/** Longer examples, in characters, are omitted. */
const maxExampleLength = 4000

/** The levels of nested objects in a body. A record in a reply has too many for a page. */
const nestedLevels = 2

/** Returns a text on one line, because descriptions in the contract contain line breaks. */
const line = (text = ''): string => text.replace(/\s+/g, ' ').trim()

/**
 * Returns /llms.txt (llmstxt.org): a description of the API, and links to the operation pages by
 * tag.
 */
export function llmsText(document: ServedDocument): string {
  const { info, tags } = document
  const operations = operationsOf(document)
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === name)
    const links = own.map(
      ({ method, path, operation }) =>
        `- [${line(operation.summary)}](${markdownPath(operation.operationId)}): \`${method.toUpperCase()} ${path}\``,
    )
    return `## ${name}\n\n${line(description)}\n\n${links.join('\n')}\n`
  })
  const documents = [
    '- [OpenAPI contract](/api/admin/openapi.json): every operation, schema and webhook',
    '- [AsyncAPI document](/api/admin/asyncapi.json): the messages of webhooks and event streams',
    '- [Collection for API clients](/api/admin/postman.json): Postman Collection v2.1 with an example of each operation',
    '- [Documentation for people](/api/admin/documentation)',
    '- [Problem codes](/api/admin/documentation/errors): every error and its remedy',
  ]
  return `# ${info.title}\n\n> ${line(info.summary)}\n\n${info.description ?? ''}\n\n## Documents\n\n${documents.join('\n')}\n\n${sections.join('\n')}`
}

/** Returns the Markdown page of an operation, or null if the operation does not exist. */
export function operationPage(document: ServedDocument, operationId: string): string | null {
  const found = operationsOf(document).find(({ operation }) => operation.operationId === operationId)
  return found ? pageOf(document, found) : null
}

function pageOf(document: ServedDocument, { method, path, operation }: ListedOperation): string {
  const { operationId, summary, description, tags } = operation
  const parts = [
    `# ${line(summary)}`,
    `\`${method.toUpperCase()} ${path}\` · operationId \`${operationId}\` · ${tags[0]}`,
    description ?? '',
    accessOf(operation),
    parametersOf(document, operation),
    bodyOf(document, operation),
    responsesOf(document, operation),
    'All operations: [/llms.txt](/llms.txt)',
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

/** Returns the required permission and ability of an operation, and its events, as Markdown. */
export function accessOf(operation: ServedOperation): string {
  if (operation.security?.length === 0) return 'Needs no sign-in.'
  const { 'x-permission': permission, 'x-ability': ability, 'x-events': events = [] } = operation
  const lines = [
    permission && `- Permission of the user's role: \`${permission}\``,
    ability && `- Ability of the token: \`${ability}\``,
    events.length > 0 && `- Events: ${events.map((name) => `\`${name}\``).join(', ')}`,
  ]
  return lines.filter(Boolean).join('\n')
}

function parametersOf(document: ServedDocument, { parameters = [] }: ServedOperation): string {
  if (parameters.length === 0) return ''
  const lines = parameters.map((each) => {
    const { name, in: place, required, description, schema } = resolveServed<ServedParameter>(document, each)
    return `- \`${name}\` (${place}, ${typeOf(document, schema)}${required ? ', required' : ''}): ${line(description)}`
  })
  return `## Parameters\n\n${lines.join('\n')}`
}

function bodyOf(document: ServedDocument, { requestBody }: ServedOperation): string {
  if (!requestBody) return ''
  const { content = {} } = resolveServed<ServedBody>(document, requestBody)
  const sections = Object.entries(content).map(
    ([type, { schema }]) => `### ${type}\n\n${describe(document, schema, type.endsWith('json'), nestedLevels)}`,
  )
  return `## Body\n\n${sections.join('\n\n')}`
}

function responsesOf(document: ServedDocument, { responses }: ServedOperation): string {
  const entries = Object.entries(responses).map(([status, reply]) => [status, resolveServed(document, reply)] as const)
  const isSuccess = ([status]: readonly [string, ServedBody]): boolean => status.startsWith('2')
  const shown = new Map<string, string>()
  const dataText = (status: string, data: ServedSchema): string => {
    const key = JSON.stringify(data)
    const earlier = shown.get(key)
    if (earlier !== undefined) return `, \`data\` as for ${earlier}.`
    shown.set(key, status)
    return `, \`data\` is:\n\n${describe(document, data, true)}`
  }
  const successes = entries.filter(isSuccess).map(([status, { description, content = {} }]) => {
    const media = Object.entries(content).map(([type, { schema }]) => {
      const data = type.endsWith('json') ? dataOf(document, schema) : undefined
      return `\`${type}\`${data ? dataText(status, data) : ''}`
    })
    return `### ${status}\n\n${[line(description), ...media].join('\n\n')}`
  })
  const errors = entries
    .filter((each) => !isSuccess(each))
    .map(([status, { description }]) => `- ${status}: ${line(description)}`)
  return `## Responses\n\n${successes.join('\n\n')}\n\n### Other statuses\n\n${errors.join('\n')}`
}

/** Returns the schema of `data` in a reply, or of its items if it is a list. */
function dataOf(document: ServedDocument, schema: ServedSchema | undefined): ServedSchema | undefined {
  const data = schema && resolveServed(document, schema).properties?.data
  return data && (data.items ?? data)
}

/**
 * Describes the properties of a schema, one on each line, and adds its example. `levels` is the
 * number of levels of nested objects whose properties are listed too.
 */
function describe(document: ServedDocument, schema: ServedSchema | undefined, hasExample: boolean, levels = 0): string {
  if (!schema) return ''
  const { description, examples = [] } = resolveServed(document, schema)
  const lines = linesOf(document, schema, levels)
  const example = examples.length > 0 && hasExample ? JSON.stringify(examples[0], null, 2) : ''
  const shown = example !== '' && example.length <= maxExampleLength ? `\n\n\`\`\`json\n${example}\n\`\`\`` : ''
  return `${line(description)}${lines.length > 0 ? `\n\n${lines.join('\n')}` : ''}${shown}`
}

function linesOf(document: ServedDocument, schema: ServedSchema, levels: number): string[] {
  const { properties = {}, required = [] } = resolveServed(document, schema)
  return Object.entries(properties).flatMap(([name, each]) => {
    const { description: text } = resolveServed(document, each)
    const mark = required.includes(name) ? ', required' : ''
    const nested = levels > 0 ? objectIn(document, each) : undefined
    return [
      `- \`${name}\` (${typeOf(document, each)}${mark}): ${line(text)}`,
      ...(nested ? linesOf(document, nested, levels - 1).map((inner) => `  ${inner}`) : []),
    ]
  })
}

/** Returns the object that a value or each item of a list is; undefined for another value. */
function objectIn(document: ServedDocument, schema: ServedSchema): ServedSchema | undefined {
  const whole = resolveServed(document, schema)
  const [only, ...others] = (whole.anyOf ?? whole.oneOf ?? []).filter(({ type }) => type !== 'null')
  if (only !== undefined) return others.length === 0 ? objectIn(document, only) : undefined
  return whole.items ? objectIn(document, whole.items) : whole.properties && whole
}

/** Returns the type of a value in words: `string`, `list of Tag`, `one of "a", "b"`. */
function typeOf(document: ServedDocument, schema: ServedSchema | undefined): string {
  if (!schema) return 'any'
  const name = schema.$ref?.split('/').at(-1)
  const whole = resolveServed(document, schema)
  const alternatives = whole.anyOf ?? whole.oneOf
  if (alternatives) return alternatives.map((each) => typeOf(document, each)).join(' or ')
  if (whole.enum) return `one of ${whole.enum.map((each) => JSON.stringify(each)).join(', ')}`
  if (whole.type === 'null') return 'null'
  const types = [whole.type ?? 'any'].flat().filter((type) => type !== 'null')
  if (types.includes('array')) return `list of ${typeOf(document, whole.items)}`
  const type = types.includes('object') && name !== undefined ? name : types.join(' or ')
  const format = whole.format === undefined ? '' : ` (${whole.format})`
  return `${type}${format}${[whole.type].flat().includes('null') ? ' or null' : ''}`
}
