// Shutdown: on a signal, a server completes running requests before it ends. After an uncaught
// error it does the same, but ends with an exit code that requests a restart.
import { once } from 'node:events'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { call, type Door, patiently } from './load.ts'

const environment = {
  ACCORD_LOG_LEVEL: 'info',
  ACCORD_ADMIN_PASSWORD: 'correct horse battery',
  ACCORD_LISTENERS: './faulty.mjs',
}
/** An extension module that throws outside of all handlers. */
const faulty = `export default (events) => {
  events.on('settings.source.create.after', ({ entity }) => {
    setTimeout(() => {
      if (entity.name === 'Unheard') Promise.reject(new Error('unhandled rejection'))
      if (entity.name === 'Twice') {
        setImmediate(() => { throw new Error('a second uncaught error') })
        throw new Error('an uncaught error')
      }
      if (entity.name === 'Uncaught') throw new Error('an uncaught error')
    })
  })
}`

let folder: string
let serving: Serving
let door: Door
beforeEach(async () => {
  folder = await workingFolder()
  writeFileSync(join(folder, 'faulty.mjs'), faulty)
  serving = await accordServing(folder, 'serve', environment)
  door = { url: serving.url, token: '' }
  const body = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'test' }
  door.token = (await patiently(() => call(door, 'POST', '/login', { body }))).body.data.token
})
afterEach(async () => {
  await serving.stop('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const source = (name: string): Promise<unknown> =>
  patiently(() => call(door, 'POST', '/sources', { body: { name } })).then(({ status }) => status)
const leftovers = (): string[] =>
  ['accord.db-wal', 'accord.db-shm'].filter((name) => existsSync(join(folder, 'data', name)))

function opened(): { socket: Socket; said: () => string; closed: Promise<unknown> } {
  const { hostname, port } = new URL(door.url)
  const socket = connect(Number(port), hostname)
  let text = ''
  // Ignores connection errors, because the test checks the replies.
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => {
    text += bytes
  })
  return { socket, said: () => text, closed: new Promise((resolve) => socket.once('close', resolve)) }
}

/** Sends a part of a request and waits until the server has read it. */
async function underWay(): Promise<{ finish: () => void; said: () => string; closed: Promise<unknown> }> {
  const body = JSON.stringify({ name: 'On its way' })
  const head = [
    'POST /api/admin/sources HTTP/1.1',
    'host: localhost',
    `authorization: Bearer ${door.token}`,
    'accept: application/json',
    'content-type: application/json',
    `content-length: ${body.length}`,
    '\r\n',
  ].join('\r\n')
  const { socket, said, closed } = opened()
  await once(socket, 'connect')
  socket.write(`${head}${body.slice(0, 5)}`)
  // After the reply to another request, the server has read the head of this request.
  expect(await source('Before')).toBe(201)
  return { finish: () => socket.write(body.slice(5)), said, closed }
}

describe('a server that is asked to stop', () => {
  it('answers what is under way, and leaves everything in its place', async () => {
    const { closed, finish, said } = await underWay()
    const stopped = serving.stop()
    await expect.poll(() => serving.said.stdout).toContain('"Closing."')
    finish()
    await closed
    expect(said()).toMatch(/^HTTP\/1\.1 201 /)
    // The client must open a new connection for its next request.
    expect(said()).toMatch(/^connection: close/im)
    expect((await stopped).code).toBe(0)
    expect(leftovers()).toEqual([])
    expect(serving.said.stderr).toBe('')
  })

  it('outlives a promise that failed unheard, and closes in order when its terminal is closed', async () => {
    expect(await source('Unheard')).toBe(201)
    await expect.poll(() => serving.said.stdout).toContain('unhandled rejection')
    expect(await source('After')).toBe(201)
    expect((await serving.stop('SIGHUP')).code).toBe(0)
    expect(leftovers()).toEqual([])
  })

  it('does not wait when it is asked twice', async () => {
    const { socket } = opened()
    await once(socket, 'connect')
    socket.write('POST /api/admin/sources HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n{')
    expect(await source('Before')).toBe(201)
    const stopped = serving.stop()
    await expect.poll(() => serving.said.stdout).toContain('"Closing."')
    expect((await serving.stop()).code).toBe(1)
    await stopped
  })
})

describe('an uncaught error', () => {
  it('is logged once, and ends the server in order with an exit code that asks for another start', async () => {
    expect(await source('Uncaught')).toBe(201)
    expect(await serving.ended).toBe(1)
    const said = serving.said.stdout.split('\n').filter((line) => line.includes('was not caught'))
    expect(said.length).toBe(1)
    expect(said[0]).toContain('an uncaught error')
    expect(leftovers()).toEqual([])
  })

  it('and a second one cut off no request: those under way are answered', async () => {
    const { closed, finish, said } = await underWay()
    expect(await source('Twice')).toBe(201)
    await expect.poll(() => serving.said.stdout).toContain('a second uncaught error')
    finish()
    await closed
    expect(said()).toMatch(/^HTTP\/1\.1 201 /)
    expect(await serving.ended).toBe(1)
    expect(leftovers()).toEqual([])
  })
})
