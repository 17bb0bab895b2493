// Compiles the TypeScript program of the guide for clients as its commands say, and runs it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { adminPassword, start } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { listeningServer } from '../support/listening.ts'
import { type PackedClient, packClient } from '../support/packed-client.ts'
import { useOne } from '../support/using.ts'

const [program = ''] = codeBlocks('src/http/docs/guides/clients.md', 'ts')

describe('the TypeScript program of the guide to clients', { timeout: 120_000 }, () => {
  let client: PackedClient
  const server = useOne(listeningServer)
  beforeAll(async () => {
    client = await packClient()
  })
  afterAll(() => {
    client.remove()
  })

  it('compiles strictly, signs in, and can run twice', async () => {
    expect(await client.compile('example', program)).toBe('')
    const lines = [
      /^Created lead (\d+) with products for 4800$/,
      /^\d+ 40 seats for Analytical Ltd 4\d00$/,
      /^Lead \d+ is worth 4900$/,
      /^validation_failed \{ title: \[ 'The field is required\.' \] \}$/,
    ].map((line) => expect.stringMatching(line))
    const password = { ACCORD_URL: server.url, ACCORD_EMAIL: 'admin@example.com', ACCORD_PASSWORD: adminPassword }
    expect((await client.run('example', password)).trim().split('\n')).toEqual(lines)
    const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
    const issued = await issueToken(server.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)
    // The second run finds the person and the product of the first.
    const [created, listed, , ...others] = (
      await client.run('example', { ACCORD_URL: server.url, ACCORD_TOKEN: issued.text })
    )
      .trim()
      .split('\n')
    expect([created, listed, ...others]).toEqual(lines)
  })
})
