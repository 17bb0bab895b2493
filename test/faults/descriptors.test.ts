// A low limit of file descriptors and many silent connections: the server starts, reserves the
// descriptors that it needs, keeps running, and responds again after it has closed the silent
// connections.
import { readdirSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { connectionsWithin, minDescriptors } from '../../src/http/descriptor-limit.ts'
import { accord, accordServing } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { needing } from '../support/programs.ts'

/** Opens a connection that sends nothing. */
const silent = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.once('connect', () => resolve(socket)).once('close', () => resolve(socket))
  })

const openIn = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

const asked = (url: string, path: string, token = ''): Promise<number> =>
  fetch(`${url}${path}`, {
    headers: { connection: 'close', ...(token && { authorization: `Bearer ${token}` }) },
    signal: AbortSignal.timeout(5_000),
  }).then(
    ({ status }) => status,
    () => 0,
  )

async function signIn(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', connection: 'close' },
    body: JSON.stringify({ email: 'admin@example.com', password: 'correct horse battery', device_name: 'test' }),
  })
  return ((await answer.json()) as { data: { token: string } }).data.token
}

needing('/proc').describe('connections', () => {
  it.concurrent.for([minDescriptors, 128, 1024])(
    'never take the last of %i descriptors, however many come',
    { timeout: 180_000 },
    async (limit, { expect }) => {
      const folder = await workingFolder()
      const production = { ACCORD_ENV: 'production', ACCORD_LOG_LEVEL: 'info' }
      const serving = await accordServing(folder, 'serve', production, { maxDescriptors: limit })
      const sockets: Socket[] = []
      try {
        const { url, pid } = serving
        const token = await signIn(url)
        expect(await asked(url, '/api/admin/leads', token)).toBe(200)

        const port = Number(new URL(url).port)
        const many = Math.min(limit + 100, 1_100)
        while (sockets.length < many)
          sockets.push(
            ...(await Promise.all(Array.from({ length: Math.min(50, many - sockets.length) }, () => silent(port)))),
          )
        // Long enough for every timer of the server to run.
        let most = 0
        const over = performance.now() + 3_000
        while (performance.now() < over) {
          most = Math.max(most, openIn(pid))
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
        expect(most).toBeLessThan(limit)
        expect(most).toBeGreaterThan(connectionsWithin(limit))

        // Silent connections are closed after ten seconds. Later requests succeed, including those
        // that read the database.
        await expect.poll(() => asked(url, '/healthz'), { timeout: 40_000 }).toBe(200)
        await expect.poll(() => asked(url, '/api/admin/leads', token), { timeout: 40_000 }).toBe(200)
        expect(serving.said.stdout).not.toMatch(/EMFILE|was not caught/)
        expect((await serving.stop()).code).toBe(0)
        console.log(`descriptors: of ${limit}, ${most} open with ${many} silent connections`)
      } finally {
        for (const socket of sockets) socket.destroy()
        await serving.stop('SIGKILL')
        rmSync(folder, { recursive: true, force: true })
      }
    },
  )
})

describe('a limit that is too low', () => {
  it('ends the start with a sentence that names it', { timeout: 60_000 }, async () => {
    const folder = await workingFolder()
    try {
      const { code, stderr } = await accord(folder, ['serve'], {}, undefined, { maxDescriptors: 40 })
      expect([code, stderr]).toEqual([
        1,
        'This process may open only 40 files, and a server needs 96. Allow more, for example with ulimit -n 1024 or LimitNOFILE=.\n',
      ])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('connectionsWithin', () => {
  it('leaves some of any limit, and is no more than ten thousand', () => {
    const limits = [64, 128, 1_024, 10_000, 20_000, null]
    expect(limits.map(connectionsWithin)).toEqual([24, 80, 864, 9_712, 10_000, 10_000])
  })
})
