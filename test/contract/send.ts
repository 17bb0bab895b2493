// Sends a generated request and checks its reply: a status that the contract lists, a documented
// problem, and a request id.
import type { InjectOptions } from 'fastify'
import { type OperationFact, operations } from '../../src/contract/operations.gen.ts'
import { createReplyChecker } from '../../src/contract/output/reply-check.ts'
import { signatureOf } from '../../src/resources/files/signed-links.ts'
import type { TestServer } from '../support/app.ts'
import { encode, file } from '../support/form.ts'
import {
  bodySchema,
  document,
  fact,
  facts,
  isFile,
  parametersOf,
  sample,
  takesFormOnly,
  takesLines,
} from '../support/schema.ts'
import { cookies } from './stages.ts'

export interface Request {
  method: string
  url: string
  body?: unknown
  headers?: Record<string, string>
  token?: string | null
}

export interface Answer {
  status: number
  headers: Record<string, string>
  body: any
  text: string
}

/**
 * Sends a request. Throws when the reply violates the contract, for example with an unlisted
 * status.
 */
export async function send({ server }: { server: TestServer }, id: string, request: Request): Promise<Answer> {
  const { method, url, body, headers = {} } = request
  // `deleteSession` needs a session as its credential.
  const isInSession = id === 'deleteSession' && request.token === undefined
  const { token = isInSession ? null : server.admin.token } = request
  const isForm = takesFormOnly(id) && typeof body === 'object' && !Buffer.isBuffer(body)
  const form = isForm ? await formOf(id, body as Record<string, unknown>) : undefined
  const sent = {
    accept: 'application/json',
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...((isInSession || fact(id).public) && cookies(server, isInSession)),
    ...(body !== undefined && { 'content-type': takesLines(id) ? 'application/x-ndjson' : 'application/json' }),
    ...form?.headers,
    ...headers,
  }
  // Resets the call limits of public operations, which other tests check.
  if (fact(id).public) await server.store.db.deleteFrom('call_counts').execute()
  const before = server.seen.length
  const payload = form?.body ?? (typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  const {
    statusCode: status,
    headers: received,
    body: text,
  } = await server.inject({
    method: method as NonNullable<InjectOptions['method']>,
    url: complete(server, id, url),
    headers: sent,
    ...(payload !== undefined && { payload }),
  })
  const isJson = /[/+]json/.test(String(received['content-type'] ?? '')) && text !== ''
  const answer = {
    status,
    headers: received as Record<string, string>,
    body: isJson ? JSON.parse(text) : undefined,
    text,
  }
  const breaches = [...breachesOf(id, method, answer), ...undeclared(id, server.seen.slice(before))]
  if (breaches.length > 0)
    throw new Error(`${method} ${url} ${short(body)}\n${breaches.join('\n')}\n${text.slice(0, 600)}`)
  return answer
}

/** Returns the body as a form. Properties that are files in the schema become file parts. */
async function formOf(id: string, body: Record<string, unknown>) {
  const data = new FormData()
  const properties = bodySchema(id)?.properties ?? {}
  for (const [name, value] of Object.entries(body ?? {})) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    for (const each of [value].flat()) {
      if (property && isFile(property)) data.append(name, file(`${name}.txt`, String(each)))
      else data.append(name, typeof each === 'object' ? JSON.stringify(each) : String(each))
    }
  }
  return encode(data)
}

/** Returns the URL with missing required query parameters added. */
function complete(server: TestServer, id: string, url: string): string {
  const [path = '', query] = url.split('?')
  const given = new URLSearchParams(query)
  const values: Record<string, () => unknown> = {
    expires: () => Math.floor(server.clock.now().getTime() / 1000) + 60,
    // The signature of a link, computed like in the server.
    signature: () =>
      signatureOf(server.app.services, Number(/\/(\d+)\//.exec(path)?.[1] ?? 0), Number(given.get('expires'))),
  }
  const added = parametersOf(id, 'query')
    .filter(({ name, required }) => required && !given.has(name))
    .map(({ name, schema }) => {
      const value = String((values[name] ?? (() => sample(schema)))())
      given.set(name, value)
      return `${name}=${encodeURIComponent(value)}`
    })
  return added.reduce((whole, each) => `${whole}${whole.includes('?') ? '&' : '?'}${each}`, url)
}

/**
 * Returns whether the contract lists the status. OPTIONS and wrong methods have no operation, and
 * HEAD has the statuses of GET.
 */
function isListed(id: string, method: string, { status }: Answer): boolean {
  if (method === 'OPTIONS') return status === 204
  const { path, statuses } = fact(id)
  const known = facts.filter(([, each]) => each.path === path).map(([, each]) => each.method.toUpperCase())
  if (!known.includes(method === 'HEAD' ? 'GET' : method)) return status === 405
  return statuses.includes(status)
}

function breachesOf(id: string, method: string, answer: Answer): string[] {
  const { status, headers, body } = answer
  const breaches: string[] = []
  if (status >= 500) breaches.push(`answered ${status}: bad input is the caller's mistake, never ours.`)
  else if (!isListed(id, method, answer))
    breaches.push(`answered ${status}, which the contract does not list for ${id}.`)
  if (headers['x-request-id'] === undefined) breaches.push('has no X-Request-Id header.')
  if (status >= 400 && body !== undefined && method !== 'HEAD') breaches.push(...problemFindings(body))
  return breaches
}

/** The events that the server declares. An operation may have more events than its clients know. */
const eventsOf = (id: string): readonly string[] => (operations as Record<string, OperationFact>)[id]?.events ?? []

/** Returns the fired events that the contract does not declare for the operation. */
const undeclared = (id: string, fired: readonly { name: string }[]): string[] =>
  fired
    .map(({ name }) => name.replace(/\.(before|after)$/, ''))
    // A line fires the events of its single operation.
    .filter((base) => !eventsOf(id).includes(base) && !takesLines(id))
    .map((base) => `fired ${base}, which the contract does not list for ${id}.`)

/** A checker for the schemas by name. Undeclared keys are findings. */
const schemas = createReplyChecker({
  ...document,
  paths: Object.fromEntries(
    Object.keys(document.components?.schemas ?? {}).map((name) => [
      `/${name}`,
      {
        get: {
          responses: {
            200: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
          },
        },
      },
    ]),
  ),
})

export const schemaFindings = (name: string, value: unknown): string[] =>
  schemas.findings({ path: `/${name}`, method: 'get' }, 200, 'application/json', value)
const problemFindings = (body: unknown): string[] => schemaFindings('Problem', body)

export const short = (value: unknown): string => {
  const text = (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replaceAll(/(.)\1{20,}/g, '$1…')
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
