// Requests with an Idempotency-Key and `kill -9` at random moments: when they are repeated after a
// restart, each key gets its first reply or is executed for the first time.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { accordServing, type Serving } from '../support/accord.ts'
import { seededImage, start } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'

const full = process.env.ACCORD_TEST_FULL === '1'
const kills = full ? 10 : 2
const clients = 32

const folder = useNewFolder('keys')
let store: Store
let token: string
let serving: Serving | undefined
beforeEach(async () => {
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data', 'accord.db'), await seededImage())
  store = openStore(`sqlite:${join(folder, 'data', 'accord.db')}`)
  const wanted = { userId: 1, name: 'test', kind: 'personal', expiresAt: null } as const
  token = (await issueToken(store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text
})
afterEach(async () => {
  await serving?.stop('SIGKILL')
  serving = undefined
  await store.close()
})

/** Returns the reply, or null if there was none. */
async function create(key: string): Promise<{ status: number; text: string; isReplayed: boolean } | null> {
  try {
    const answer = await fetch(`${serving?.url}/api/admin/sources`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ name: key }),
    })
    const isReplayed = answer.headers.get('idempotency-replayed') === 'true'
    return { status: answer.status, text: await answer.text(), isReplayed }
  } catch {
    return null
  }
}

it('gives every key its first answer after kill -9, and does nothing twice', async () => {
  const answered = new Map<string, string>()
  const lost: string[] = []
  for (let life = 0; life < kills; life++) {
    serving = await accordServing(folder, 'serve', { ACCORD_RATE_LIMIT: 'off' })
    let isKilled = false
    const client = async (number: number): Promise<void> => {
      for (let count = 0; !isKilled; count++) {
        const key = `key-${life}-${number}-${count}`
        const answer = await create(key)
        if (answer === null) lost.push(key)
        else if (answer.status === 201) answered.set(key, answer.text)
        else if (answer.status !== 503) throw new Error(`${answer.status} ${answer.text}`)
      }
    }
    const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
    const [had, since] = [answered.size, performance.now()]
    while (answered.size < had + 100 && performance.now() - since < 60_000) await pause(5)
    await pause(Math.random() * 300)
    const stopped = serving.stop('SIGKILL')
    isKilled = true
    await stopped
    await all
  }
  const committed = new Set(
    (await store.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name),
  )
  const unanswered = lost.filter((key) => committed.has(key)).length
  serving = await accordServing(folder, 'serve', { ACCORD_RATE_LIMIT: 'off' })
  for (const [key, text] of [...answered].slice(-200))
    expect(await create(key)).toEqual({ status: 201, text, isReplayed: true })
  for (const key of lost) {
    const answer = await create(key)
    expect([key, answer?.status, answer?.isReplayed]).toEqual([key, 201, committed.has(key)])
    expect(answer?.text).toContain(`"name":"${key}"`)
  }
  const names = (await store.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const key of [...answered.keys(), ...lost]) expect(names).toContain(key)
  console.log(
    `${kills} kills: ${answered.size} answered, ${lost.length} answers lost, ${unanswered} of them committed.`,
  )
}, 300_000)

it('goes on with a mass operation behind the records that were done before kill -9', async () => {
  const ask = async (path: string, body: object, key: string): Promise<{ status: number; body: any } | null> => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json',
      'idempotency-key': key,
    }
    const url = `${serving?.url}/api/admin${path}`
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => null)
    return answer && { status: answer.status, body: await answer.json().catch(() => null) }
  }
  const deleted = (): Promise<{ entity_id: number | null }[]> =>
    store.db.selectFrom('events').select('entity_id').where('name', '=', 'settings.tag.delete.after').execute()
  let before = 0
  for (let life = 0; life < kills; life++) {
    serving = await accordServing(folder, 'serve', { ACCORD_RATE_LIMIT: 'off' })
    const ids: number[] = []
    for (let count = 0; count < 100; count++) {
      const name = `${life}-${count}`
      ids.push((await ask('/tags', { name }, name))?.body.data.id)
    }
    const lost = ask('/tags/mass-delete', { ids }, `mass-${life}`)
    while ((await deleted()).length < before + 10) await pause(1)
    await serving.stop('SIGKILL')
    await lost
    const done = (await deleted()).length - before
    serving = await accordServing(folder, 'serve', { ACCORD_RATE_LIMIT: 'off' })
    const again = await ask('/tags/mass-delete', { ids }, `mass-${life}`)
    expect([again?.status, again?.body.data]).toEqual([200, { processed: ids, failed: [] }])
    const told = (await deleted()).slice(before)
    expect(told.map(({ entity_id }) => entity_id).sort()).toEqual([...ids].sort())
    before += ids.length
    await serving.stop('SIGKILL')
    console.log(`Killed with ${done} of ${ids.length} records done.`)
  }
}, 300_000)
