// Password hashing: argon2id, the same work for an unknown account, and a limited number of
// concurrent hashes. For the limit, a mock replaces the hash function and ends when the
// test allows it.
import { availableParallelism } from 'node:os'
import { beforeEach, describe, expect, it, vi } from 'vitest'

const hashing = vi.hoisted(() => ({
  isHeld: false,
  now: 0,
  most: 0,
  finish: [] as (() => void)[],
  /** The recorded hash and verify calls. */
  work: [] as string[],
}))
vi.mock('argon2', async (original) => {
  const actual = await original<typeof import('argon2')>()
  return {
    ...actual,
    hash: async (...given: Parameters<typeof actual.hash>) => {
      if (!hashing.isHeld) {
        const made = await actual.hash(...given)
        hashing.work.push(made)
        return made
      }
      hashing.most = Math.max(hashing.most, ++hashing.now)
      await new Promise<void>((resolve) => hashing.finish.push(resolve))
      hashing.now--
      return 'a hash'
    },
    verify: (...given: Parameters<typeof actual.verify>) => {
      hashing.work.push(given[0])
      return actual.verify(...given)
    },
  }
})

import { readConfig } from '../../src/config/config.ts'
import { hashPassword } from '../../src/kernel/auth/passwords.ts'
import { startServer, testConfig } from '../support/app.ts'
import { openPage } from '../support/page.ts'
import { someone } from '../support/people.ts'

const places = Math.max(1, availableParallelism() - 1)
const config = testConfig()

beforeEach(() => {
  hashing.most = 0
  hashing.work = []
})

describe('a stored password', () => {
  it('is argon2id of 19 MiB, two passes and one lane, and nothing else of it is stored', async () => {
    const { passwordMemoryKiB } = readConfig({}).config
    const server = await startServer({ config: { passwordMemoryKiB } })
    const { id } = await someone(server, [])
    const { password_hash } = await server.store.db
      .selectFrom('users')
      .select('password_hash')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    expect(password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,(t=2,p=1|p=1,t=2)\$[\w+/]{22}\$[\w+/]{43}$/)
    expect((await server.store.image()).includes('a password to guess')).toBe(false)
    await server.close()
  })
})

describe('an address that signs in', () => {
  it('costs one argon2id hash of the same parameters, even for an unknown user or one without a password', async () => {
    const server = await startServer()
    const known = await someone(server, [])
    const unset = await someone(server, [], { password: undefined, password_confirmation: undefined })
    const page = openPage(server)
    await page.get('/csrf-cookie')
    for (const email of [known.email, unset.email, 'unknown@example.com']) {
      for (const ask of [
        () => server.anonymous.post('/login', { email, password: 'a guess', device_name: 'Phone' }),
        () => page.post('/session', { email, password: 'a guess' }),
      ]) {
        hashing.work = []
        expect((await ask()).status).toBe(401)
        expect(hashing.work).toEqual([expect.stringMatching(/^\$argon2id\$v=19\$m=1024,(t=2,p=1|p=1,t=2)\$/)])
      }
    }
    await server.close()
  })
})

describe('hashing passwords', () => {
  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'keeps its limit when a request comes %i turns after another one has ended',
    async (turns) => {
      hashing.isHeld = true
      const all = Array.from({ length: places + 1 }, () => hashPassword(config, 'waits'))
      hashing.finish.shift()?.()
      for (let turn = 0; turn < turns; turn++) await null
      all.push(hashPassword(config, 'comes late'))
      let done = false
      const finished = Promise.all(all).then(() => {
        done = true
      })
      while (!done) {
        hashing.finish.shift()?.()
        await new Promise((resolve) => setImmediate(resolve))
      }
      await finished
      hashing.isHeld = false
      expect(hashing.most).toBe(places)
    },
  )
})
