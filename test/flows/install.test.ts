// From an empty folder to a working installation, as a newcomer's shell sees it.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { publishContract } from '../../src/data.ts'
import { accord, accordServing } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'accord-install-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (name: string): number => statSync(join(folder, name)).mode & 0o777
const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8')
const passwordIn = (text: string): string => /Password:? +(\S+)/.exec(text)?.[1] ?? ''

async function login(url: string, email: string, password: string): Promise<{ status: number; token: string }> {
  const answer = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ email, password, device_name: 'test' }),
  })
  const body = (await answer.json()) as { data?: { token: string } }
  return { status: answer.status, token: body.data?.token ?? '' }
}

const get = (url: string, path: string, token: string): Promise<Response> =>
  fetch(`${url}/api/admin${path}`, { headers: { authorization: `Bearer ${token}`, accept: 'application/json' } })

describe('accord install', () => {
  it('makes everything once, and a second time nothing', async () => {
    const first = await accord(folder, ['install'])
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(passwordIn(first.stdout)).toMatch(/^[\w-]{24}$/)
    expect(readdirSync(folder).sort()).toEqual(['.env', 'data'])
    expect([modeOf('data'), modeOf('data/secret'), modeOf('.env')]).toEqual([0o700, 0o600, 0o600])
    expect(
      textOf('.env')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#')),
    ).toEqual([])
    expect(textOf('data/openapi.yaml')).toBe(readFileSync('openapi.yaml', 'utf8'))

    const before = [textOf('.env'), textOf('data/secret'), textOf('data/openapi.json')]
    const second = await accord(folder, ['install'])
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(second.stdout).toContain('Everything is in place')
    expect(second.stdout).not.toContain('Password')
    expect([textOf('.env'), textOf('data/secret'), textOf('data/openapi.json')]).toEqual(before)
  })

  it('leaves an existing .env alone and follows it', async () => {
    writeFileSync(join(folder, '.env'), 'ACCORD_DATA_DIR=elsewhere\nACCORD_ADMIN_PASSWORD=a long enough one\n')
    const { stdout, code } = await accord(folder, ['install'])
    expect(code).toBe(0)
    expect(textOf('.env')).toContain('a long enough one')
    expect(stdout).not.toContain('a long enough one')
    expect(existsSync(join(folder, 'elsewhere', 'accord.db'))).toBe(true)
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })
})

describe('accord start', () => {
  it('goes from nothing to a signed-in list of leads, and stops cleanly when asked', async () => {
    const serving = await accordServing(folder, 'start')
    const password = passwordIn(serving.said.stdout)
    expect(serving.said.stdout).toContain('admin@example.com')
    expect(serving.said.stdout).toContain(`Base URL       ${serving.url}`)
    const { status, token } = await login(serving.url, 'admin@example.com', password)
    expect(status).toBe(200)
    const leads = await get(serving.url, '/leads', token)
    expect(leads.status).toBe(200)
    expect(Object.keys((await leads.json()) as object).sort()).toEqual(['data', 'links', 'meta'])
    const { code, ms } = await serving.stop()
    expect(code).toBe(0)
    expect(ms).toBeLessThan(5000)

    const again = await accordServing(folder, 'start')
    expect(again.said.stdout).not.toContain('Password')
    expect((await login(again.url, 'admin@example.com', password)).status).toBe(200)
    expect((await again.stop('SIGINT')).code).toBe(0)
  })
})

describe('accord user create and token create', () => {
  it('lets the new user sign in, and the token do what its abilities say and no more', async () => {
    await accord(folder, ['install'])
    const user = ['user', 'create', '--name', 'Ada Lovelace', '--email', 'ada@example.com', '--role', 'administrator']
    const created = await accord(folder, user)
    expect(created).toMatchObject({ code: 0, stderr: '' })
    const token = ['token', 'create', '--email', 'ADA@example.com', '--name', 'reports']
    const issued = await accord(folder, [...token, '--abilities', 'settings:read', '--expires-in-days', 'never'])
    expect(issued.code).toBe(0)
    expect(issued.stdout).toMatch(/^\d+\|[\w-]{43}\n$/)

    const serving = await accordServing(folder, 'serve')
    expect((await login(serving.url, 'ada@example.com', passwordIn(created.stdout))).status).toBe(200)
    expect((await get(serving.url, '/sources', issued.stdout.trim())).status).toBe(200)
    expect((await get(serving.url, '/leads', issued.stdout.trim())).status).toBe(403)
    await serving.stop()

    expect(await accord(folder, user)).toMatchObject({ code: 1, stdout: '' })
    const mistaken = await accord(folder, [...token, '--abilities', 'leads:raed'])
    expect(mistaken).toEqual({
      code: 1,
      stdout: '',
      stderr: 'There is no ability leads:raed. Did you mean `leads:read`?\n',
    })
  })
})

describe('a mistake', () => {
  it.each([
    [{ ACCORD_PORT: 'eighty' }, 'ACCORD_PORT must be a whole number from 0 to 65535, not "eighty".\n'],
    [{ ACCORD_SECRET: 'short' }, 'ACCORD_SECRET must have at least 32 characters.\n'],
    [{ ACCORD_DATABASE_URL: 'mysql://host' }, 'ACCORD_DATABASE_URL must start with sqlite:, not "mysql:".\n'],
  ])('in %o is one sentence that names the variable', async (environment, stderr) => {
    expect(await accord(folder, ['serve'], environment as Record<string, string>)).toEqual({
      code: 1,
      stdout: '',
      stderr,
    })
    expect(readdirSync(folder)).toEqual([])
  })

  it('in a listener module, or a taken port, stops the start with its name', async () => {
    const missing = await accord(folder, ['serve'], { ACCORD_LISTENERS: './gone.mjs', ACCORD_PORT: '0' })
    expect(missing.code).toBe(1)
    expect(missing.stderr).toMatch(/^ACCORD_LISTENERS names "\.\/gone\.mjs", which does not exist \(.*\)\.\n$/)

    const server = await listeningServer()
    const taken = await accord(folder, ['serve'], { ACCORD_PORT: new URL(server.url).port, ACCORD_LOG_LEVEL: 'silent' })
    expect(taken.code).toBe(1)
    expect(taken.stderr).toMatch(/^ACCORD_PORT is \d+, and something else listens there already\./)
    await server.close()
  })
})

describe('accord doctor', () => {
  it('says what to do about an empty folder, and nothing is left to do after the installation', async () => {
    const before = await accord(folder, ['doctor'], { ACCORD_PORT: '0' })
    expect(before.code).toBe(1)
    expect(before.stdout).toContain(
      'BROKEN  Documentation: the contract is not published in the data folder. Run: accord install',
    )
    expect(readdirSync(folder)).toEqual([])

    await accord(folder, ['install'])
    const after = await accord(folder, ['doctor'], { ACCORD_PORT: '0' })
    expect(after.stdout).not.toContain('BROKEN')
    expect(after.code).toBe(0)

    chmodSync(join(folder, 'data', 'secret'), 0o644)
    const open = await accord(folder, ['doctor'], { ACCORD_PORT: '0' })
    expect(open.code).toBe(1)
    expect(open.stdout).toMatch(/BROKEN {2}Secret: other users can read .*Run: chmod 600/)
  })
})

describe('publishing the contract', () => {
  it('shows in a running server on the next request', async () => {
    const server = await listeningServer()
    const read = () => fetch(`${server.url}/api/admin/openapi.json`)
    const was = await read()
    const tag = was.headers.get('etag') ?? ''
    const known = await fetch(`${server.url}/api/admin/openapi.json`, { headers: { 'if-none-match': tag } })
    expect(known.status).toBe(304)

    writeFileSync(
      join(server.dataDir, 'openapi.json'),
      JSON.stringify({ openapi: '3.1.0', info: { title: 'Another' } }),
    )
    const changed = await read()
    expect(await changed.json()).toMatchObject({ info: { title: 'Another' } })
    expect(changed.headers.get('etag')).not.toBe(tag)
    const readiness = await fetch(`${server.url}/readyz`)
    expect([readiness.status, await readiness.json()]).toMatchObject([
      200,
      { status: 'ready', checks: { database: 'ok', documentation: 'outdated' } },
    ])

    expect(publishContract(testConfig({ dataDir: server.dataDir }))).toBe(true)
    expect((await read()).headers.get('etag')).toBe(tag)
    expect(publishContract(testConfig({ dataDir: server.dataDir }))).toBe(false)
    await server.close()
  })
})
