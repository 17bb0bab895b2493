// The state machine of the write queue: README.md lists the same transitions as the code, and
// random work on a connection with random failures reaches all of them.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { transitions } from '../../db/sqlite/group-commit/group.ts'
import type { WriteConnection } from '../../db/sqlite/group-commit/write-connection.ts'
import { createWriteQueue } from '../../db/sqlite/group-commit/write-queue.ts'
import { seeded } from '../faults/chance.ts'

const readme = readFileSync(new URL('../../db/sqlite/group-commit/README.md', import.meta.url), 'utf8')
const section = readme.slice(readme.indexOf('## Transitions'), readme.indexOf('## Rules'))

describe('the README', () => {
  it('lists every transition, and no other', () => {
    const listed = [...section.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)].map(([, from, to]) => `${from} -> ${to}`)
    const accepted = Object.entries(transitions).flatMap(([from, targets]) => targets.map((to) => `${from} -> ${to}`))
    expect(listed.sort()).toEqual(accepted.sort())
  })
})

type Random = () => number
const turn = () => new Promise((resolve) => setImmediate(resolve))
const turns = async (count: number): Promise<void> => {
  for (let done = 0; done < count; done++) await turn()
}

/** Returns a fake connection that refuses calls in a wrong order and fails at random. */
function failingConnection(random: Random) {
  let transaction: 'none' | 'open' | 'spoiled' = 'none'
  let hasSavepoint = false
  let committed: string[] = []
  let written: string[] = []
  const wrongCalls: string[] = []
  const expectThat = (holds: boolean, call: string) => holds || wrongCalls.push(`${call} while ${transaction}`)
  const maySpoil = () => {
    if (transaction === 'open' && random() < 0.02) transaction = 'spoiled'
    if (transaction === 'spoiled') throw new Error('disk full')
  }
  const end = () => {
    transaction = 'none'
    hasSavepoint = false
    written = []
  }
  const connection: WriteConnection = {
    run({ sql }) {
      maySpoil()
      if (sql.startsWith('bad')) throw new Error('constraint')
      if (transaction === 'open') written.push(sql)
      else committed.push(sql)
      return { rows: [] }
    },
    begin() {
      expectThat(transaction === 'none', 'begin')
      if (random() < 0.2) throw new Sqlite.SqliteError('busy', 'SQLITE_BUSY')
      if (random() < 0.02) throw new Sqlite.SqliteError('fails', 'SQLITE_IOERR')
      transaction = 'open'
    },
    commit() {
      expectThat(transaction !== 'none' && !hasSavepoint, 'commit')
      const fails = transaction === 'spoiled' || random() < 0.05
      if (!fails) committed = [...committed, ...written]
      end()
      if (fails) throw new Error('commit failed')
    },
    rollback: end,
    savepoint() {
      expectThat(!hasSavepoint, 'savepoint')
      maySpoil()
      hasSavepoint = true
    },
    releaseSavepoint() {
      hasSavepoint = false
      maySpoil()
    },
    rollbackToSavepoint() {
      hasSavepoint = false
      maySpoil()
    },
    isClosedToMembers: () => transaction === 'spoiled',
  }
  return {
    ...{ connection, wrongCalls, has: (sql: string) => committed.includes(sql) },
    assertFree: () => void expectThat(transaction === 'none', 'exclusive'),
  }
}

function queueOver(connection: WriteConnection, random: Random) {
  const soon = () => (random() < 0.3 ? turns(1 + random() * 3) : null)
  return createWriteQueue<string>(connection, {
    maxWaitMs: 20,
    maxGroupMs: 5,
    isWriteComing: () => random() < 0.3,
    beforeCommit: async () => {
      await turns(random() * 3)
      if (random() < 0.1) throw new Error('cannot finish')
    },
    whenDurable: soon,
    prepareLog: soon,
  })
}

describe('random work', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'is answered once, and every confirmed write is committed, with seed %i',
    async (seed) => {
      const random = seeded(seed)
      const { connection, wrongCalls, has, assertFree } = failingConnection(random)
      const queue = queueOver(connection, random)
      const unconfirmed: string[] = []

      async function transaction(sql: string): Promise<void> {
        const member = await queue.begin(random() < 0.8 ? 'member' : 'own group')
        try {
          if (random() < 0.3) await turn()
          member.run({ sql, parameters: [] })
          if (random() < 0.3) queue.defer([sql])
          if (random() < 0.2) throw new Error('changed its mind')
          await member.commit()
        } catch (error) {
          await member.rollback()
          throw error
        }
      }
      async function exclusive(sql: string): Promise<void> {
        const handle = await queue.exclusive()
        assertFree()
        await turns(random() * 3)
        try {
          assertFree()
          expect(() => queue.defer([sql])).toThrow('outside of a transaction')
          handle.run({ sql, parameters: [] })
        } finally {
          handle.release()
        }
      }
      const kinds = [
        transaction,
        transaction,
        exclusive,
        (sql: string) => queue.write({ sql, parameters: [] }),
        (sql: string) => queue.runOutside({ sql, parameters: [] }),
      ]
      const work = async (sql: string): Promise<void> => {
        await kinds[Math.floor(random() * kinds.length)]?.(sql)
        if (!has(sql)) unconfirmed.push(sql)
      }

      const outcomes: Promise<PromiseSettledResult<void>[]>[] = []
      for (let count = 0; count < 300; count++) {
        outcomes.push(Promise.allSettled([work(`${random() < 0.1 ? 'bad' : 'good'} ${count}`)]))
        if (random() < 0.4) await turn()
      }
      const states = (await Promise.all(outcomes)).flat().map(({ status }) => status)
      expect([states.length, new Set(states).size, unconfirmed, wrongCalls]).toEqual([300, 2, [], []])
      expect(queue.isIdle()).toBe(true)
      await queue.close()
      await expect(queue.begin('member')).rejects.toThrow('closed')
    },
  )
})
