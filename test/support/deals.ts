// Leads with only the values that a test about amounts sets; those of given.ts have every value of
// the contract's example.
import { expect } from 'vitest'
import type { TestServer } from './app.ts'

/** Worth 100 unless the body says otherwise. */
export async function deal({ admin }: TestServer, body: object = {}): Promise<any> {
  const reply = await admin.post('/leads', { title: 'Deal', lead_value: 100, ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.data
}
