// Leads with nothing but what a test about amounts says of them; those of given.ts have all that the contract's example has.
import { expect } from 'vitest'
import type { TestServer } from './app.ts'

/** Worth 100 unless the body says otherwise. */
export async function deal({ admin }: TestServer, body: object = {}): Promise<any> {
  const reply = await admin.post('/leads', { title: 'Deal', lead_value: 100, ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.data
}
