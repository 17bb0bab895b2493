// Simulates a browser page: stores cookies, sends its origin, and sends the value of the CSRF
// cookie with writes. Tests can override each header.
import { adminPassword, type Reply, type TestServer } from './app.ts'

export interface Page {
  jar: Map<string, string>
  /** The complete Set-Cookie headers of the last reply. */
  set: string[]
  call<T = any>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply<T>>
  get<T = any>(path: string, headers?: Record<string, string>): Promise<Reply<T>>
  post<T = any>(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply<T>>
}

export const origin = 'http://localhost'

/** Opens a page without a session. A header with the value `''` is not sent. */
export function openPage(server: Pick<TestServer, 'inject'>): Page {
  const jar = new Map<string, string>()
  const page: Page = {
    jar,
    set: [],
    async call(method, path, body, headers = {}) {
      const all = {
        accept: 'application/json',
        origin,
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(method !== 'GET' && { 'x-xsrf-token': jar.get('__Host-XSRF-TOKEN') ?? jar.get('XSRF-TOKEN') ?? '' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      }
      const reply = await server.inject({
        method: method as 'GET',
        url: `/api/admin${path}`,
        headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')),
        ...(body !== undefined && { payload: JSON.stringify(body) }),
      })
      page.set = [reply.headers['set-cookie'] ?? []].flat()
      for (const each of page.set) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
        if (value === '') jar.delete(name)
        else jar.set(name, value)
      }
      const isJson = /[/+]json/.test(String(reply.headers['content-type'] ?? ''))
      return {
        status: reply.statusCode,
        headers: reply.headers,
        text: reply.body,
        body: isJson && reply.body !== '' ? JSON.parse(reply.body) : undefined,
      }
    },
    get: (path, headers) => page.call('GET', path, undefined, headers),
    post: (path, body, headers) => page.call('POST', path, body, headers),
  }
  return page
}

/** Opens a page and signs a user in: the administrator, unless `as` overrides the credentials. */
export async function signedInPage(
  server: Pick<TestServer, 'inject'>,
  as: Record<string, unknown> = {},
): Promise<Page> {
  const page = openPage(server)
  await page.get('/csrf-cookie')
  const { status, text } = await page.post('/session', { email: 'admin@example.com', password: adminPassword, ...as })
  if (status !== 200) throw new Error(`Signing in answered ${status}: ${text}`)
  return page
}
