// That no more passwords are hashed at a time than there are places, whoever comes at whatever moment (DESIGN 8). The hash
// itself is a stand-in that takes as long as the test says; everything of ours is real.
import { availableParallelism } from 'node:os'
import { beforeEach, describe, expect, it, vi } from 'vitest'

const hashing = vi.hoisted(() => ({ now: 0, most: 0, finish: [] as (() => void)[] }))
vi.mock('argon2', () => ({
  argon2id: 2,
  hash: async () => {
    hashing.most = Math.max(hashing.most, ++hashing.now)
    await new Promise<void>((resolve) => hashing.finish.push(resolve))
    hashing.now--
    return 'a hash'
  },
}))

import { hashPassword } from '../../src/kernel/passwords.ts'
import { testConfig } from '../support/app.ts'

const places = Math.max(1, availableParallelism() - 1)
const config = testConfig()

beforeEach(() => {
  hashing.most = 0
})

describe('hashing passwords', () => {
  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'keeps its bound when somebody comes %i turns after a place is left',
    async (turns) => {
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
      expect(hashing.most).toBe(places)
    },
  )
})
