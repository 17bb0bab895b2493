// Creates leads for tests about amounts. They have only the given values, unlike the leads of
// given.ts, which have all values of the contract's example.
import { expect } from 'vitest'
import type { TestServer } from './app.ts'

/** Creates a lead. Its value is 100, unless the body sets another. */
export async function deal({ admin }: TestServer, body: object = {}): Promise<any> {
  const reply = await admin.post('/leads', { title: 'Deal', lead_value: 100, ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.data
}
