// `accord serve --processes`: several processes on one port, from the view of users and of a
// supervisor such as systemd.
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../db/store.ts'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { administrate, openEmpty } from '../support/engine.ts'
import { useFolder } from '../support/folders.ts'
import { until } from '../support/until.ts'

const password = 'correct horse battery'
/** Long timeouts, because a busy machine starts processes slowly. */
const soon = { timeout: 60_000 }
const inTime = { timeout: 180_000 }
const folder = useFolder('processes')
let store: Store
let environment: Record<string, string>

beforeAll(async () => {
  store = await openEmpty()
  environment = {
    ...{ ACCORD_DATABASE_URL: store.url, ACCORD_DATABASE_CONNECTIONS: '3', ACCORD_ADMIN_PASSWORD: password },
    ...{ ACCORD_LOG_LEVEL: 'info' },
  }
  const { code, stderr } = await accord(folder, ['install'], environment)
  expect(code, stderr).toBe(0)
}, inTime.timeout)
afterAll(async () => {
  await store.close()
})

type Line = Record<string, unknown>

const linesOf = ({ said }: Serving): Line[] =>
  said.stdout.split('\n').flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []))

/** Returns the process ids of all starts of the process with this number, in order. */
const starts = (serving: Serving, number: number): number[] =>
  linesOf(serving)
    .filter((line) => line.msg === 'A process serves.' && line.process === number)
    .map((line) => Number(line.process_pid))

async function serve(changes: Record<string, string> = {}): Promise<Serving> {
  const serving = await accordServing(folder, 'serve', { ...environment, ...changes }, { args: ['--processes', '2'] })
  try {
    for (const number of [1, 2]) await until(() => starts(serving, number).length === 1, soon.timeout)
    return serving
  } catch (error) {
    await serving.stop('SIGKILL')
    throw error
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Opens a new connection for each call, so that calls are distributed over the processes. */
const get = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, { headers: { connection: 'close', ...headers } })

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ email: 'admin@example.com', password, device_name: 'test' }),
  })
  expect(response.status).toBe(200)
  return ((await response.json()) as { data: { token: string } }).data.token
}

const pidsThatAnswered = (serving: Serving): Set<unknown> =>
  new Set(linesOf(serving).flatMap((line) => (line.msg === 'answered' ? [line.pid] : [])))

describe('accord serve --processes 2', inTime, () => {
  let serving: Serving
  beforeAll(async () => {
    serving = await serve()
  }, inTime.timeout)
  afterAll(async () => void (await serving.stop('SIGKILL')))

  it('spreads connections over both processes, which take each other’s tokens', async () => {
    const token = await signIn(serving.url)
    for (let index = 0; index < 6; index++) {
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
      expect((await get(`${serving.url}/api/admin/leads`, headers)).status).toBe(200)
    }
    await until(() => pidsThatAnswered(serving).size === 2)
  })

  it('answers /metrics for both processes, with every series once', async () => {
    const count = (text: string): number =>
      [...text.matchAll(/^accord_http_request_duration_seconds_count\{operation="getHealth".* (\d+)$/gm)]
        .map(([, found]) => Number(found))
        .reduce((sum, found) => sum + found, 0)
    const scrape = async (): Promise<string> => (await get(`${serving.url}/metrics`)).text()
    const before = count(await scrape())
    for (let index = 0; index < 4; index++) await get(`${serving.url}/healthz`)
    const text = await scrape()
    expect(count(text) - before).toBe(4)
    const series = text.split('\n').flatMap((line) => /^(accord_\S+(?:\{[^}]*\})?) /.exec(line)?.[1] ?? [])
    expect(series.length).toBe(new Set(series).size)
    for (const process of ['1', '2']) {
      expect(series).toContain(`accord_http_connections{process="${process}"}`)
      expect(series).toContain(`accord_process_start_time_seconds{process="${process}"}`)
      expect(series).toContain(`accord_database_connections{pool="write",state="idle",process="${process}"}`)
    }
    expect(text.match(/^accord_jobs_oldest_due_age_seconds /gm)).toHaveLength(1)
    expect(text.match(/^# TYPE accord_http_connections /gm)).toHaveLength(1)
  })

  it('runs the background work in the first process only', async () => {
    const lock = () =>
      store.db.selectFrom('locks').select('locked_by').where('name', '=', 'scheduler').executeTakeFirst()
    await until(async () => (await lock())?.locked_by.split(':')[2] === String(starts(serving, 1)[0]))
  })

  it('starts a process that was killed again, while the other one serves', async () => {
    const before = starts(serving, 1)
    const others = starts(serving, 2)
    const killed = before.at(-1) ?? 0
    const end = () => linesOf(serving).find((line) => line.process_pid === killed && line.signal === 'SIGKILL')
    process.kill(killed, 'SIGKILL')
    // Until the primary process notices the end, it may pass connections to the killed process.
    await until(() => end() !== undefined)
    expect((await get(`${serving.url}/healthz`)).status).toBe(200)
    await expect.poll(() => starts(serving, 1).length, soon).toBe(before.length + 1)
    expect(starts(serving, 2)).toEqual(others)
    expect(end()).toMatchObject({ level: 50, process: 1, seconds: 1 })
  })

  it('leaves no process behind when the supervisor is killed', async () => {
    const pids = [1, 2].map((number) => starts(serving, number).at(-1) ?? 0)
    await serving.stop('SIGKILL')
    await until(() => !pids.some(isAlive))
  })

  it('closes every process gracefully, also when a terminal signals all of them', async () => {
    const other = await serve({ ACCORD_WORKER: 'off' })
    onTestFinished(async () => void (await other.stop('SIGKILL')))
    const pids = [...starts(other, 1), ...starts(other, 2)]
    for (const pid of pids) process.kill(pid, 'SIGTERM')
    expect(await other.stop()).toMatchObject({ code: 0 })
    expect(pids.filter(isAlive)).toEqual([])
    expect(linesOf(other).filter((line) => Number(line.level) >= 50)).toEqual([])
  })
})

describe('accord serve --processes refuses', inTime, () => {
  const refusal = async (args: string[], changes: Record<string, string> = {}): Promise<string> => {
    const { code, stdout, stderr } = await accord(folder, ['serve', ...args], { ...environment, ...changes })
    expect(code).toBe(1)
    expect(stdout).toBe('')
    return stderr
  }

  it('more connections than the server allows, in one sentence', async () => {
    const database = store.url.split('/').at(-1)
    await administrate(`alter database ${database} connection limit 40`)
    onTestFinished(() => administrate(`alter database ${database} connection limit -1`))
    const text = await refusal(['--processes', '3'], { ACCORD_DATABASE_CONNECTIONS: '8', ACCORD_LOG_LEVEL: 'error' })
    expect(text).toBe(
      'ACCORD_DATABASE_CONNECTIONS is 8: 3 processes may open 60 connections, and the PostgreSQL server allows 40. Set it to at most 4, start fewer processes, or raise max_connections.\n',
    )
  })

  it('a port that is taken, once', async () => {
    const taken = await new Promise<Server>((resolve) => {
      const server: Server = createServer().listen(0, '127.0.0.1', () => resolve(server))
    })
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as { port: number }
    const text = await refusal(['--processes', '2'], { ACCORD_PORT: String(port), ACCORD_LOG_LEVEL: 'error' })
    expect(text.match(/something else listens there/g)).toHaveLength(1)
  })
})
