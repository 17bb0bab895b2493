// Permissions are checked again after the body has arrived, because a body may take minutes to
// send.
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { inWork, listeningServer } from '../support/listening.ts'
import { useOne } from '../support/using.ts'

let id = 0
let credentials: Record<string, string> = {}
let socket: Socket
const server = useOne(listeningServer)
afterEach(() => void socket.destroy())

const boundary = 'frontier'
const password = 'a password to guess'
let users = 0

const call = async (path: string, init: RequestInit, headers: Record<string, string>) => {
  const all = { accept: 'application/json', 'content-type': 'application/json', ...headers }
  const reply = await fetch(`${server.url}/api/admin${path}`, { ...init, headers: all })
  return { status: reply.status, body: (await reply.json()) as any, cookies: reply.headers.getSetCookie() }
}
let admin: Record<string, string> = {}

beforeEach(async () => {
  const mine = { email: 'admin@example.com', password: adminPassword, device_name: 'x' }
  const { body } = await call('/login', { method: 'POST', body: JSON.stringify(mine) }, {})
  admin = { authorization: `Bearer ${body.data.token}` }
  const email = `user${++users}@example.com`
  const user = { name: 'Ann', email, role_id: 1, password, password_confirmation: password }
  const made = await call('/settings/users', { method: 'POST', body: JSON.stringify(user) }, admin)
  id = made.body.data.id
  const theirs = await call('/login', { method: 'POST', body: JSON.stringify({ ...mine, email, password }) }, {})
  credentials = { authorization: `Bearer ${theirs.body.data.token}`, token: String(theirs.body.meta.token_id) }
})

/** Sends the beginning of a request, runs `meanwhile`, sends the rest, and returns the status. */
async function interrupted(path: string, type: string, body: [string, string], meanwhile: () => Promise<void>) {
  const { hostname, port } = new URL(server.url)
  socket = connect(Number(port), hostname)
  const length = Buffer.byteLength(body.join(''))
  const head = ['accept: application/json', `authorization: ${credentials.authorization}`, `content-type: ${type}`]
  socket.write(
    `POST /api/admin${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${head.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n${body[0]}`,
  )
  await inWork(server, 1)
  await pause(100)
  await meanwhile()
  const answer = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))))
  socket.write(body[1])
  return Number((await answer).split(' ')[1])
}

const upload = (meanwhile: () => Promise<void>) =>
  interrupted(
    '/files',
    `multipart/form-data; boundary=${boundary}`,
    [
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\nhalf of `,
      `a text\r\n--${boundary}--\r\n`,
    ],
    meanwhile,
  )
const lead = (meanwhile: () => Promise<void>) =>
  interrupted('/tags', 'application/json', ['{"name":"late', ` ${users}","color":"#aabbcc"}`], meanwhile)

const count = async (table: 'files' | 'tags') =>
  (await server.app.services.store.db.selectFrom(table).select('id').execute()).length

const ends: [string, () => Promise<void>, number][] = [
  ['nothing happens', async () => undefined, 201],
  [
    'the user is deactivated',
    async () => {
      const off = { method: 'PUT', body: JSON.stringify({ is_active: false }) }
      expect((await call(`/settings/users/${id}`, off, admin)).status).toBe(200)
    },
    401,
  ],
  [
    'the token is revoked',
    async () => {
      const { token: _, ...headers } = credentials
      const gone = { method: 'DELETE' }
      expect((await call(`/tokens/${credentials.token}`, gone, { ...headers })).status).toBe(200)
    },
    401,
  ],
]

describe.each(ends)('when %s while a body is being sent', (_what, meanwhile, status) => {
  it(`an upload is answered ${status}, and stored only when it was taken`, async () => {
    const before = await count('files')
    expect(await upload(meanwhile)).toBe(status)
    expect((await count('files')) - before).toBe(status === 201 ? 1 : 0)
  })

  it(`a record is answered ${status}, and made only when it was taken`, async () => {
    const before = await count('tags')
    expect(await lead(meanwhile)).toBe(status)
    expect((await count('tags')) - before).toBe(status === 201 ? 1 : 0)
  })
})
