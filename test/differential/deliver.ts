// Sends a request of the fuzzer to a server with `inject`.
import type { InjectOptions } from 'fastify'
import { isStream } from '../fuzz/check.ts'
import type { Wanted } from '../fuzz/requests.ts'
import type { TestServer } from '../support/app.ts'
import type { Outcome } from './compare.ts'

export async function deliver(server: TestServer, { method, url, headers, bytes }: Wanted): Promise<Outcome> {
  // Event streams are not requested, because `inject` waits for the end of the reply.
  const sent = Object.fromEntries(headers.filter((header) => !isStream({ headers: [header] })))
  try {
    const reply = await server.inject({
      method: method as NonNullable<InjectOptions['method']>,
      url,
      headers: sent,
      ...(bytes !== undefined && { payload: bytes }),
    })
    return { status: reply.statusCode, headers: reply.headers as Record<string, string>, bytes: reply.rawPayload }
  } catch (cause) {
    return cause instanceof Error ? cause : new Error(String(cause))
  }
}
