// The data folder is removed or the database replaced while a server is running: within a second,
// the server refuses writes and reports the problem. Also tests a missing or different secret for a
// database with encrypted values.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'
import { until } from '../support/until.ts'

const password = 'correct horse battery'
const settings = { ACCORD_ADMIN_PASSWORD: password, ACCORD_LOG_LEVEL: 'error' }
/** Longer than the interval of the server's checks, which is a second. */
const lookedMs = 1_600

const folder = useNewFolder('moved')
let serving: Serving | undefined
afterEach(async () => {
  await serving?.stop('SIGKILL')
  serving = undefined
})

const inData = (...names: string[]): string => join(folder, 'data', ...names)

async function call(path: string, token?: string, body?: BodyInit): Promise<{ status: number; body: any }> {
  const answer = await fetch(`${serving?.url}${path}`, {
    ...(body !== undefined && { method: 'POST', body }),
    headers: {
      accept: 'application/json',
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
  })
  const text = await answer.text()
  return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

async function begin(): Promise<string> {
  serving = await accordServing(folder, 'start', settings)
  const login = { email: 'admin@example.com', password, device_name: 'test' }
  return (await call('/api/admin/login', undefined, JSON.stringify(login))).body.data.token
}

const source = (name: string): string => JSON.stringify({ name })

/** Expects that writes are refused with this reason, and that reads work. */
async function isRefusing(token: string, reason: RegExp): Promise<void> {
  await until(() => /Writes are refused until it is back/.test(serving?.said.stdout ?? ''))
  const refused = await call('/api/admin/sources', token, source('Lost'))
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
    503,
    'unavailable',
    'The data folder or the database of this server was removed or replaced; nothing was written.',
  ])
  const form = new FormData()
  form.set('file', new Blob(['bytes']), 'a.txt')
  expect((await call('/api/admin/files', token, form)).status).toBe(503)
  // Data that was read before can still be read and exported.
  expect((await call('/api/admin/sources', token)).status).toBe(200)
  const readiness = await call('/readyz')
  expect([readiness.status, readiness.body.detail]).toEqual([503, expect.stringMatching(reason)])
  expect((await call('/healthz')).status).toBe(200)
  expect((await call('/metrics')).body).toContain('\naccord_database_lost 1\n')
}

describe('a data folder that is moved away under a server', () => {
  it('is noticed, nothing is written elsewhere, and all goes on when it is back', async () => {
    const token = await begin()
    expect((await call('/api/admin/sources', token, source('Before'))).status).toBe(201)
    renameSync(inData(), join(folder, 'away'))
    await isRefusing(token, /^Nothing is written: \S+data\S* was removed\. Put it back, or restart the server\.$/)
    expect(existsSync(inData())).toBe(false)
    renameSync(join(folder, 'away'), inData())
    await until(async () => (await call('/readyz')).status === 200)
    expect((await call('/api/admin/sources', token, source('After'))).status).toBe(201)
    // The values of /metrics are cached for five seconds.
    await expect.poll(async () => (await call('/metrics')).body).toContain('\naccord_database_lost 0\n')
  })

  it('is not taken for another one in its place', async () => {
    const token = await begin()
    renameSync(inData(), join(folder, 'away'))
    mkdirSync(inData())
    copyFileSync(join(folder, 'away', 'accord.db'), inData('accord.db'))
    await isRefusing(token, /was (replaced by another one|removed)\. Put it back, or restart the server\.$/)
  })
})

describe('a database under a running server', () => {
  it.each([
    [
      'that is replaced by a copy',
      () => {
        copyFileSync(inData('accord.db'), inData('copy.db'))
        renameSync(inData('copy.db'), inData('accord.db'))
      },
    ],
    ['whose log is removed', () => rmSync(inData('accord.db-wal'))],
  ])('%s is noticed by servers', async (_how, replace) => {
    const token = await begin()
    expect((await call('/api/admin/sources', token, source('Before'))).status).toBe(201)
    await sleep(lookedMs)
    replace()
    await isRefusing(token, /^Nothing is written: \S+accord\.db(-wal)? was (removed|replaced by another one)\./)
  })

  it('is noticed by a worker of its own too', async () => {
    expect((await accord(folder, ['install'], settings)).code).toBe(0)
    serving = await accordServing(folder, 'worker', { ...settings, ACCORD_LOG_LEVEL: 'info' })
    renameSync(inData('accord.db'), inData('moved.db'))
    await expect.poll(() => serving?.said.stdout).toMatch(/accord\.db was removed\. Writes are refused/)
  })
})

describe('a secret', { timeout: 180_000 }, () => {
  const webhook = JSON.stringify({ name: 'W', url: 'https://example.com/', events: ['lead.create.after'] })

  it('that is missing is not replaced by a new one while the database was installed with one', async () => {
    const token = await begin()
    expect((await call('/api/admin/settings/webhooks', token, webhook)).status).toBe(201)
    await serving?.stop()
    serving = undefined
    renameSync(inData('secret'), join(folder, 'kept'))
    for (const command of ['start', 'serve', 'install', 'worker']) {
      const { code, stderr } = await accord(folder, [command], { ...settings, ACCORD_PORT: '0' })
      expect([code, stderr], command).toEqual([
        1,
        expect.stringMatching(
          /^ACCORD_SECRET is not set and \S+secret does not contain one, but this database was installed with/,
        ),
      ])
      expect(existsSync(inData('secret')), command).toBe(false)
    }
    renameSync(join(folder, 'kept'), inData('secret'))
    await begin()
  })

  it('that is another one is refused, in the file and in ACCORD_SECRET, until it is taken on purpose', async () => {
    expect((await accord(folder, ['install'], settings)).code).toBe(0)
    const before = readFileSync(inData('secret'), 'utf8')
    writeFileSync(inData('secret'), `${'y'.repeat(43)}\n`)
    const inFile = await accord(folder, ['start'], { ...settings, ACCORD_PORT: '0' })
    expect([inFile.code, inFile.stderr]).toEqual([1, expect.stringContaining('does not contain the secret that this')])
    const set = { ...settings, ACCORD_PORT: '0', ACCORD_SECRET: 'z'.repeat(40) }
    const inSetting = await accord(folder, ['start'], set)
    expect([inSetting.code, inSetting.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^ACCORD_SECRET is not the secret that this database was installed with\..*accord install --new-secret\n$/,
      ),
    ])
    const doctor = await accord(folder, ['doctor'], set)
    expect(doctor.stdout).toMatch(/BROKEN {2}Encrypted values: ACCORD_SECRET is not the secret/)
    expect((await accord(folder, ['install', '--new-secret'], set)).code).toBe(0)
    expect((await accord(folder, ['install'], set)).code).toBe(0)
    writeFileSync(inData('secret'), before)
    expect((await accord(folder, ['install'], settings)).code).toBe(1)
  })
})
