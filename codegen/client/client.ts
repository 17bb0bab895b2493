// Creates the client: openapi-fetch with a bearer token, an Idempotency-Key for each POST, and
// retries.
import createClient, { type Client } from 'openapi-fetch'
import type { paths } from '../../src/contract/schema.gen.ts'
import type { Calls } from './calls.ts'
import { serializeBody } from './form.ts'
import { type RetryOptions, retryingFetch } from './retry.ts'

/**
 * `crm.GET('/api/admin/leads', …)`: paths, parameters, bodies, replies and errors are typed.
 * `Paths` are those of the contract, or those that openapi-typescript generated for an installation
 * with custom attributes.
 */
export interface AccordClient<Paths extends object = paths> extends Client<Calls<Paths>> {}

export interface ClientOptions extends RetryOptions {
  /** Origin of the server, such as `https://crm.example.com`. */
  url: string
  /** Bearer token `<id>|<secret>`, or a function that returns it before each request. */
  token?: string | (() => string | Promise<string>)
}

/**
 * Returns a client. A call resolves to `{ data }` or `{ error }` when the server replies, for every
 * status. A call rejects when no reply arrives. `unwrap` turns `error` into an exception.
 */
export function createAccordClient<Paths extends object = paths>({
  url,
  token,
  ...retry
}: ClientOptions): AccordClient<Paths> {
  const client = createClient<Calls<Paths>>({
    baseUrl: url.replace(/\/+$/, ''),
    fetch: retryingFetch(retry),
    headers: { accept: 'application/json' },
    bodySerializer: serializeBody,
    // Lists in the query are `tag_id=1,2`, as the contract says.
    querySerializer: { array: { style: 'form', explode: false } },
  })
  client.use({
    async onRequest({ request }) {
      const bearer = typeof token === 'function' ? await token() : token
      if (bearer !== undefined) request.headers.set('authorization', `Bearer ${bearer}`)
      // To a caller that does not accept JSON, the server sends errors as HTML.
      const accept = request.headers.get('accept') ?? ''
      if (!/\bjson\b/.test(accept)) request.headers.set('accept', `${accept}, application/json;q=0.5`)
      // PUT and DELETE need no key, because a repeated call has no second effect.
      if (request.method === 'POST' && !request.headers.has('idempotency-key'))
        request.headers.set('idempotency-key', crypto.randomUUID())
      return request
    },
  })
  return client
}
