// `kill -9` of the server and of the client during bulk writes. The same command continues until
// each line is answered: no line is lost and none is carried out twice. ACCORD_TEST_FULL=1 kills 20
// times.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { accordServing, type Serving } from '../support/accord.ts'
import { freePort } from '../support/free-port.ts'
import { workingFolder } from '../support/installed.ts'
import { seeded } from './chance.ts'
import { environment, isFull } from './serving.ts'

const kills = isFull ? 20 : 4
const seed = 20_261_129
/** The longest time in milliseconds between the first new answer and the kill. */
const maxMs = 60
const lines = isFull ? 6_000 : 1_500

let folder: string
let serving: Serving | undefined
beforeEach(async () => {
  folder = await workingFolder()
})
afterEach(async () => {
  await serving?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const client = fileURLToPath(new URL('bulk.client.ts', import.meta.url))

it('loses no line and doubles none when the server and the client are killed', async () => {
  const port = await freePort()
  const settings = { ...environment, ACCORD_PORT: String(port), ACCORD_WORKER: 'off' }
  serving = await accordServing(folder, 'serve', settings)
  const token = await signIn(serving.url)
  const file = join(folder, 'lines.ndjson')
  writeFileSync(file, Array.from({ length: lines }, (_, index) => lineOf(index)).join(''))
  const random = seeded(seed)
  const output = join(folder, 'answers.ndjson')
  const url = serving.url
  const start = (): ChildProcess => {
    rmSync(output, { force: true })
    return spawn(process.execPath, ['--import', 'tsx', client, url, token, file, output], { stdio: 'inherit' })
  }
  const answers = (): number => (existsSync(output) ? statSync(output).size : 0)

  let sending = start()
  let killed = 0
  let most = 0
  while (killed < kills) {
    // The stored answers come first, so the kill waits until there are more than ever before.
    const since = performance.now()
    while (answers() <= most && sending.exitCode === null && performance.now() - since < 5_000) await pause(2)
    most = Math.max(most, answers())
    await pause(random() * maxMs)
    if (sending.exitCode !== null) break
    if (killed % 2 === 0) {
      await serving.stop('SIGKILL')
      serving = await accordServing(folder, 'serve', settings)
    } else {
      sending.kill('SIGKILL')
      sending = start()
    }
    killed++
  }
  if (sending.exitCode === null) await new Promise((resolve) => sending.once('exit', resolve))
  const found = readFileSync(output, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Schema<'BulkAnswer'>)
  const total = await count(url, token)
  console.log(`bulk: ${killed} kills, ${found.length} answers, ${total} leads, seed ${seed}`)
  expect(killed).toBe(kills)
  expect(found.map(({ line }) => line)).toEqual(Array.from({ length: lines }, (_, index) => index + 1))
  expect(new Set(found.map(({ did }) => did))).toEqual(new Set(['created']))
  expect(new Set(found.map(({ id }) => id)).size).toBe(lines)
  expect(total).toBe(lines)
}, 300_000)

const lineOf = (index: number): string =>
  `${JSON.stringify({ op: 'create', type: 'leads', fields: { title: `Line ${index}`, lead_value: index } })}\n`

async function signIn(url: string): Promise<string> {
  const body = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'bulk' }
  const headers = { accept: 'application/json', 'content-type': 'application/json' }
  const reply = await fetch(`${url}/api/admin/login`, { method: 'POST', headers, body: JSON.stringify(body) })
  return ((await reply.json()) as { data: { token: string } }).data.token
}

async function count(url: string, token: string): Promise<number> {
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  const reply = await fetch(`${url}/api/admin/leads?per_page=1`, { headers })
  return ((await reply.json()) as { meta: { total: number } }).meta.total
}
