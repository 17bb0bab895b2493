// An API client for external programs: typed by the contract, with limited concurrency and retries.
import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from '../../../src/contract/schema.gen.ts'

export type Api = Client<paths, 'application/json'>
type Problem = components['schemas']['Problem']

const atOnce = 8
const tries = 5

export class Refused extends Error {
  readonly status: number
  constructor(response: Response, problem: Partial<Problem> | undefined) {
    super(`${response.status} from ${new URL(response.url).pathname}: ${problem?.message ?? response.statusText}`)
    this.status = response.status
  }
}

/**
 * Sends a request, and repeats it after 429 and 503, because the server has then changed nothing.
 */
async function patiently(request: Request): Promise<Response> {
  for (let left = tries; ; left--) {
    const response = await fetch(request.clone())
    if (left === 0 || (response.status !== 429 && response.status !== 503)) return response
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get('retry-after') ?? 1)))
  }
}

/** Signs in and returns a client with the token. Throws `Refused` with the server's sentence. */
export async function signIn({ url, email, password }: { url: string; email: string; password: string }): Promise<Api> {
  const client = createClient<paths, 'application/json'>({
    baseUrl: url.replace(/\/+$/, ''),
    fetch: patiently,
    headers: { accept: 'application/json' },
    querySerializer: { array: { style: 'form', explode: false } },
  })
  const { token } = (
    await must(client.POST('/api/admin/login', { body: { email, password, device_name: 'Sales data' } }))
  ).data
  client.use({
    onRequest({ request }) {
      request.headers.set('authorization', `Bearer ${token}`)
      return request
    },
  })
  return client
}

/** Returns the reply of a call. Throws its problem. */
export async function must<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call
  if (data === undefined) throw new Refused(response, error as Partial<Problem> | undefined)
  return data
}

/**
 * Runs the work for each item, a few at a time, and returns the results in the order of the items.
 */
export async function forEach<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  done: (count: number) => void,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  let finished = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      results[index] = await work(items[index] as T)
      done(++finished)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
