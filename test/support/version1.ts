// A client of version 1 of the API. It records the rows of the rewrite table that have
// returned success.
import { type RewriteRow, rows } from '../../src/http/compat-v1/rows.ts'
import type { Reply, TestServer } from './app.ts'
import { type Form, form } from './form.ts'

const base = '/api/v1'
const nameOf = ({ method, path }: RewriteRow): string => `${method} ${path}`

/** The rows with a pattern of their paths. Paths with more fixed segments come first. */
const patterns = rows
  .map((row) => {
    const text = row.path.replaceAll(/\/\{\w+\?\}/g, '(?:/[^/]+)?').replaceAll(/\{\w+\}/g, '[^/]+')
    return { row, pattern: new RegExp(`^${text}$`), words: row.path.replaceAll(/\/\{\w+\??\}/g, '').length }
  })
  .sort((one, other) => other.words - one.words)

export const rowFor = (method: string, path: string): string | undefined => {
  const found = patterns.find(({ row, pattern }) => row.method === method && pattern.test(path))
  return found && nameOf(found.row)
}
export const rowNames: readonly string[] = rows.map(nameOf)

export interface Version1 {
  get(path: string): Promise<Reply>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  put(path: string, body?: unknown): Promise<Reply>
  delete(path: string, body?: unknown): Promise<Reply>
  /** Sends a form as `application/x-www-form-urlencoded`. */
  urlencoded(method: 'POST' | 'PUT' | 'DELETE', path: string, fields: Record<string, string>): Promise<Reply>
  /** Sends a form as `multipart/form-data`. */
  form(path: string, parts: Parameters<typeof form>[0]): Promise<Reply>
}

/** Returns a client with the token. Rows that return success are added to `answered`. */
export function version1(server: TestServer, token: string | null, answered = new Set<string>()): Version1 {
  async function send(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    sent: Partial<Form> = {},
  ): Promise<Reply> {
    const { body, headers } = sent
    const reply = await server.inject({
      method,
      url: base + path,
      headers: { accept: 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }), ...headers },
      ...(body && { payload: body }),
    })
    const isJson = String(reply.headers['content-type']).startsWith('application/json')
    const asked =
      method === 'POST' ? (/name="_method"\r\n\r\n(\w+)|\b_method"?[=:]"?(\w+)/.exec(String(body)) ?? []) : []
    const name = rowFor(asked[1] ?? asked[2] ?? method, path.split('?')[0] ?? '')
    if (reply.statusCode === 200 && name !== undefined) answered.add(name)
    return {
      status: reply.statusCode,
      headers: reply.headers,
      text: reply.body,
      body: isJson && reply.body !== '' ? JSON.parse(reply.body) : undefined,
    }
  }
  const json = (body: unknown, headers = {}): Partial<Form> =>
    body === undefined
      ? { headers }
      : { body: Buffer.from(JSON.stringify(body)), headers: { 'content-type': 'application/json', ...headers } }
  return {
    get: (path) => send('GET', path),
    post: (path, body, headers) => send('POST', path, json(body, headers)),
    put: (path, body) => send('PUT', path, json(body)),
    delete: (path, body) => send('DELETE', path, json(body)),
    urlencoded: (method, path, fields) =>
      send(method, path, {
        body: Buffer.from(new URLSearchParams(fields).toString()),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
    form: async (path, parts) => send('POST', path, await form(parts)),
  }
}
