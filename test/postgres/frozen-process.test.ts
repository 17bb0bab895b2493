// A process that stands still (SIGSTOP) while it writes does not stop the writes of the others for
// long: the server ends its transaction. The same behind PgBouncer.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../db/store.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { isFull } from '../faults/serving.ts'
import { accordServing, type Serving } from '../support/accord.ts'
import { seededImage, start } from '../support/app.ts'
import { openImage } from '../support/engine.ts'
import { useNewFolder } from '../support/folders.ts'
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { needing } from '../support/programs.ts'

/** The time that the server allows, with room for a busy machine. The usual gap is 1.3 to 3.1 s. */
const longestGapMs = 4_500
const frozenMs = 9_000

const folder = useNewFolder('frozen')
let store: Store
let token: string
let pooler: PgBouncer | undefined
let running: Serving[] = []
beforeEach(async () => {
  store = await openImage(await seededImage())
  const terms = { userId: 1, name: 't', kind: 'personal', expiresAt: null, abilities: ['*'], allowedIps: [] } as const
  token = (await issueToken(store.db, { ...terms, abilities: ['*'], allowedIps: [] }, start)).text
})
afterEach(async () => {
  for (const { pid } of running) process.kill(pid, 'SIGCONT')
  await Promise.all(running.map((each) => each.stop('SIGKILL')))
  running = []
  await pooler?.stop()
  pooler = undefined
  await store.close()
})

async function startProcess(name: string, url: string, more: Record<string, string>): Promise<Serving> {
  const own = join(folder, name)
  mkdirSync(own)
  const serving = await accordServing(own, 'serve', {
    ACCORD_DATABASE_URL: url,
    ACCORD_SECRET: 'a secret that all processes of the cluster share',
    ACCORD_WORKER: 'off',
    ...more,
  })
  running.push(serving)
  return serving
}

/** Writes with several clients until `isOver`, and returns the longest time without a success. */
async function write({ url }: Serving, isOver: () => boolean): Promise<{ longestGapMs: number; statuses: number[] }> {
  const statuses = new Set<number>()
  let last = performance.now()
  let longest = 0
  const client = async (): Promise<void> => {
    for (let count = 0; !isOver(); count++) {
      const answer = await fetch(`${url}/api/admin/leads`, {
        method: 'POST',
        headers: {
          ...{ accept: 'application/json', 'content-type': 'application/json' },
          authorization: `Bearer ${token}`,
        },
        body: JSON.stringify({ title: `Lead ${count}`, lead_value: 1 }),
        signal: AbortSignal.timeout(30_000),
      }).catch(() => null)
      if (answer === null) continue
      statuses.add(answer.status)
      await answer.arrayBuffer()
      if (answer.status === 201) {
        longest = Math.max(longest, performance.now() - last)
        last = performance.now()
      }
    }
  }
  await Promise.all(Array.from({ length: 4 }, client))
  return { longestGapMs: Math.max(longest, performance.now() - last), statuses: [...statuses] }
}

/** Returns whether a transaction holds the order of commits. */
async function isHeld(): Promise<boolean> {
  const free = sql`select id from commit_order for update skip locked`.execute(store.db)
  // The query fails when a writer waits for the whole table.
  return free.then(
    ({ rows }) => rows.length === 0,
    () => true,
  )
}

/** Stops the process in a moment in which it holds the order of commits. */
async function freezeInCommitOrder(pid: number): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    process.kill(pid, 'SIGSTOP')
    let held = 0
    while (held < 5 && (await isHeld())) {
      held++
      await sleep(40)
    }
    if (held === 5) return
    process.kill(pid, 'SIGCONT')
    await sleep(20 + Math.random() * 20)
  }
  throw new Error('The process never held the order of commits when it was stopped.')
}

async function freezeOne(url: string, more: Record<string, string> = {}): Promise<void> {
  const frozen = await startProcess('frozen', url, more)
  const other = await startProcess('other', url, more)
  let isOver = false
  const writing = Promise.all([write(frozen, () => isOver), write(other, () => isOver)])
  await sleep(1_000)
  await freezeInCommitOrder(frozen.pid)
  await sleep(frozenMs)
  process.kill(frozen.pid, 'SIGCONT')
  isOver = true
  const [, { longestGapMs: gap, statuses }] = await writing
  expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([])
  if (isFull) console.log(`a process stands still: the longest gap of the other is ${Math.round(gap)} ms`)
  expect(gap).toBeLessThan(longestGapMs)
}

describe('a process that stands still while it writes', { timeout: 120_000 }, () => {
  it('stops the others for no longer than the server allows', () => freezeOne(store.url))

  needing('pgbouncer').it('also behind PgBouncer in transaction mode', async () => {
    const server = new URL(store.url)
    pooler = await startPgBouncer(server, 10)
    await freezeOne(pooler.through(store.url), { ACCORD_DATABASE_POOLER: 'transaction' })
  })
})
