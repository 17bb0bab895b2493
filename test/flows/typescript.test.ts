// Compiles the TypeScript program of the guide to clients as its command says, and runs it. The
// sample of the guide to webhooks meets messages that are not genuine.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { adminPassword, start } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { listeningServer } from '../support/listening.ts'
import { type PackedClient, packClient } from '../support/packed-client.ts'
import { useOne } from '../support/using.ts'
import { webhookMessages, webhookSecret } from '../support/webhook-messages.ts'

const [program = ''] = codeBlocks('src/http/docs/guides/clients.md', 'ts')
const [receiver = ''] = codeBlocks('src/http/docs/guides/webhooks.md', 'ts')
const commands = codeBlocks('src/http/docs/guides/clients.md', 'text').join('')
const [, options = ''] = /^npx tsc (.*) example\.mts$/m.exec(commands) ?? []

let client: PackedClient
beforeAll(async () => {
  client = await packClient()
}, 120_000)
afterAll(() => client.remove())

describe('the TypeScript program of the guide to clients', { timeout: 120_000 }, () => {
  const server = useOne(listeningServer)

  it('compiles as the guide says, signs in, and can run twice', async () => {
    expect(options).toContain('--strict')
    expect(await client.compile('example', program, options.split(' '))).toBe('')
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

describe('the receiver of the guide to webhooks, and that of the package', { timeout: 120_000 }, () => {
  const driver = `
import { verifyWebhook } from '@accord-crm/client'
const { cases, body, secret } = JSON.parse(process.env.INPUT ?? '')
const isVerified = (headers: IncomingHttpHeaders): boolean => {
  try {
    return verifyWebhook({ headers, body }, secret) !== undefined
  } catch (error) {
    if (error instanceof Error && error.name === 'WebhookVerificationError') return false
    throw error
  }
}
const told = (headers: IncomingHttpHeaders) =>
  [isGenuine(headers, body, secret), isGenuine(headers, Buffer.from(body), secret), isVerified(headers)]
console.log(JSON.stringify([cases.map(told), isGenuine(cases[0], \`\${body} \`, secret), isGenuine(cases[0], body, '')]))`

  it('accept genuine messages, and answer false to all others without a failure', async () => {
    const { good, bad, body } = webhookMessages()
    expect(await client.compile('receiver', receiver + driver)).toBe('')
    const input = { cases: [...good, ...bad], body, secret: webhookSecret }
    const [answers, changed, unsigned] = JSON.parse(await client.run('receiver', { INPUT: JSON.stringify(input) }))
    expect(answers).toEqual([...good.map(() => [true, true, true]), ...bad.map(() => [false, false, false])])
    expect([changed, unsigned]).toEqual([false, false])
  })
})
