// Checks replies against the contract. A property that is not in the contract is an error. Schemas
// are compiled on first use.
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import { newAjv } from '../ajv.ts'

export interface ReplyChecker {
  /** Returns one sentence for each violation of the contract. */
  findings(operation: Place, status: number, mediaType: string, body: unknown): string[]
  /**
   * Checks a reply that is not JSON. Returns a sentence if the contract does not list the status
   * with this media type or with a range such as `image/*`.
   */
  byteFindings(operation: Place, status: number, mediaType: string): string[]
  /** Returns the property names of the records in the operation's successful reply. */
  keys(operation: { path: string; method: string; status: number }): string[]
}

interface Place {
  path: string
  method: string
}

const pointerPart = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1')

const checkers = new WeakMap<object, ReplyChecker>()

/**
 * Returns the checker of a contract. All servers with this contract share it, because compilation
 * is expensive.
 */
export function createReplyChecker(document: object): ReplyChecker {
  const checker = checkers.get(document) ?? compileChecker(document as Document)
  checkers.set(document, checker)
  return checker
}

function compileChecker(document: Document): ReplyChecker {
  let ajv: Ajv | undefined
  // `addSchema` copies and indexes the whole contract, so the instance is created only for the
  // first checked reply.
  const compiler = (): Ajv => {
    ajv ??= newAjv().addSchema(closedCopy(document), 'contract')
    return ajv
  }
  const compiled = new Map<string, ValidateFunction | undefined>()

  function responseOf({ path, method }: Place, status: number): Response | undefined {
    const declared = document.paths[path]?.[method]?.responses?.[String(status)]
    return declared?.$ref ? document.components.responses[declared.$ref.split('/').at(-1) ?? ''] : declared
  }

  function validator({ path, method }: Place, status: number, mediaType: string): ValidateFunction | undefined {
    const declared = document.paths[path]?.[method]?.responses?.[String(status)]
    if (!responseOf({ path, method }, status)?.content?.[mediaType]?.schema) return undefined
    const pointer = declared?.$ref ?? `#/paths/${pointerPart(path)}/${method}/responses/${status}`
    const ref = encodeURI(`contract${pointer}/content/${pointerPart(mediaType)}/schema`)
    const known = compiled.get(ref)
    if (known) return known
    const made = compiler().compile({ $ref: ref })
    compiled.set(ref, made)
    return made
  }

  const follow = (schema: Shape | undefined): Shape =>
    schema?.$ref ? follow(document.components.schemas[schema.$ref.split('/').at(-1) ?? '']) : (schema ?? {})

  return {
    keys({ path, method, status }) {
      const content = document.paths[path]?.[method]?.responses?.[String(status)]?.content
      const data = follow(follow(content?.['application/json']?.schema).properties?.data)
      return Object.keys(follow(data.items ?? data).properties ?? {})
    },
    byteFindings(place, status, mediaType) {
      const [type = ''] = mediaType.split(';')
      const ranges = [type.trim().toLowerCase(), `${type.split('/')[0]}/*`, '*/*']
      const content = responseOf(place, status)?.content ?? {}
      return ranges.some((each) => content[each]) ? [] : [unlisted(place, status, mediaType)]
    },
    findings({ path, method }, status, mediaType, body) {
      const validate = validator({ path, method }, status, mediaType)
      if (!validate) return [unlisted({ path, method }, status, mediaType)]
      if (mediaType.startsWith('text/') || validate(body)) return []
      return (validate.errors ?? []).map((error) => `${method.toUpperCase()} ${path} ${status} ${where(error)}`)
    },
  }
}

const unlisted = ({ path, method }: Place, status: number, mediaType: string): string =>
  `${method.toUpperCase()} ${path} answered ${status} ${mediaType}, which the contract does not list.`

const where = ({ instancePath, message, params }: ErrorObject): string =>
  `${instancePath || '/'} ${message} ${JSON.stringify(params)}`

interface Shape {
  $ref?: string
  properties?: Record<string, Shape>
  items?: Shape
}

interface Response {
  $ref?: string
  content?: Record<string, { schema?: Shape }>
}

interface Document {
  paths: Record<string, Record<string, { responses?: Record<string, Response> }>>
  components: { responses: Record<string, Response>; schemas: Record<string, Shape> }
}

function closedCopy(document: object): object {
  const copy = structuredClone(document)
  close(copy)
  return copy
}

function close(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  const schema = value as Record<string, unknown>
  if (typeof schema.properties === 'object' && schema.properties !== null && [schema.type].flat().includes('object')) {
    schema.additionalProperties ??= false
  }
  for (const each of Object.values(schema)) close(each)
}
