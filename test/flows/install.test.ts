// Installation from an empty folder with the command line.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { serveCommand } from '../../src/commands/serve.ts'
import { createTokenCommand } from '../../src/commands/token.ts'
import { createUserCommand, disableUserCommand, enableUserCommand, listUsersCommand } from '../../src/commands/user.ts'
import { readConfig } from '../../src/config/config.ts'
import { publishContract } from '../../src/installation/data-folder.ts'
import { accord, accordCutShort, accordServing } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { installed, installedFolder, said } from '../support/installed.ts'
import { listeningServer } from '../support/listening.ts'

const folder = useNewFolder('install')

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

const inboundIn = (text: string): string | undefined => /Inbound mail +(\S+)/.exec(text)?.[1]

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

    const inbound = inboundIn(first.stdout)
    expect(inbound).toMatch(/^http:\/\/localhost:8000\/admin\/mail\/inbound-parse\?secret=[\w-]{43}$/)

    const before = [textOf('.env'), textOf('data/secret'), textOf('data/openapi.json')]
    const second = await accord(folder, ['install'])
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(second.stdout).toContain('Everything is already installed')
    expect(second.stdout).not.toContain('Password')
    expect(inboundIn(second.stdout)).toBe(inbound)
    expect([textOf('.env'), textOf('data/secret'), textOf('data/openapi.json')]).toEqual(before)

    const dataDir = join(folder, 'data')
    const config = testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}`, port: 0 })
    const { stdout, code } = await said(() => doctorCommand(config))
    expect(stdout).not.toContain('BROKEN')
    expect(code).toBe(0)
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
    // The block of information for the user.
    expect(serving.said.stdout).toContain(
      [
        '',
        `  Documentation  ${serving.url}/api/admin/documentation`,
        `  Sign-in        ${serving.url}/api/admin/session   as admin@example.com`,
        `  Password       ${password}   (shown only now)`,
        '',
      ].join('\n'),
    )
    const { status, token } = await login(serving.url, 'admin@example.com', password)
    expect(status).toBe(200)
    const leads = await get(serving.url, '/leads', token)
    expect(leads.status).toBe(200)
    expect(Object.keys((await leads.json()) as object).sort()).toEqual(['data', 'links', 'meta'])
    expect(inboundIn(serving.said.stdout)).toBeUndefined()
    const query = new URL(inboundIn((await accord(folder, ['install'])).stdout) ?? '').search
    const receive = async (query: string): Promise<number> => {
      const body = new URLSearchParams({ from: 'ada@example.com', subject: 'Hello' })
      return (await fetch(`${serving.url}/admin/mail/inbound-parse${query}`, { method: 'POST', body })).status
    }
    expect([await receive(''), await receive(query)]).toEqual([401, 200])
    expect((await serving.stop()).code).toBe(0)

    const again = await accordServing(folder, 'start')
    expect(again.said.stdout).not.toContain('Password')
    expect(inboundIn(again.said.stdout)).toBeUndefined()
    expect((await login(again.url, 'admin@example.com', password)).status).toBe(200)
    expect((await again.stop('SIGINT')).code).toBe(0)
  })
})

describe('accord user create and token create', () => {
  it('lets the new user sign in, and the token do what its abilities say and no more', async () => {
    const place = await installed()
    const work = join(place.dataDir, '..')
    const user = ['user', 'create', '--name', 'Ada Lovelace', '--email', 'ada@example.com', '--role', 'administrator']
    const created = await accord(work, user)
    expect(created).toMatchObject({ code: 0, stderr: '' })
    const token = ['token', 'create', '--email', 'ADA@example.com', '--name', 'reports']
    const issued = await accord(work, [...token, '--abilities', 'settings:read', '--expires-in-days', 'never'])
    expect(issued.code).toBe(0)
    expect(issued.stdout).toMatch(/^\d+\|[\w-]{43}\n$/)

    const { anonymous, caller } = place.server
    const account = { email: 'ada@example.com', password: passwordIn(created.stdout), device_name: 'test' }
    expect((await anonymous.post('/login', account)).status).toBe(200)
    const program = caller(issued.stdout.trim())
    expect((await program.get('/sources')).status).toBe(200)
    expect((await program.get('/leads')).status).toBe(403)

    const again = { name: 'Ada Lovelace', email: 'ada@example.com', role: 'administrator' }
    expect(await said(() => createUserCommand(place.config, again))).toMatchObject({ code: 1, stdout: '' })
    const options = { email: 'ada@example.com', name: 'reports', abilities: 'leads:raed', expiresInDays: 'never' }
    expect(await said(() => createTokenCommand(place.config, options))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'There is no ability leads:raed. Did you mean `leads:read`?\n',
    })
    await place.close()
  })
})

describe('accord user', () => {
  it('lists, disables and enables users; tokens and sessions of a disabled user end', async () => {
    const place = await installed()
    const { config, server } = place
    const create = { name: 'Ada Lovelace', email: 'ada@example.com', role: 'Administrator' }
    const password = passwordIn((await said(() => createUserCommand(config, create))).stdout)
    const list = async (): Promise<string> => (await said(() => listUsersCommand(config))).stdout
    expect((await list()).split('\n')).toContain('2\tada@example.com\tAda Lovelace\tAdministrator\tactive')
    const login = () => server.anonymous.post('/login', { email: create.email, password, device_name: 'test' })
    const { data } = (await login()).body
    const ada = server.caller(data.token)
    expect((await ada.get('/sources')).status).toBe(200)

    const disabled = await said(() => disableUserCommand(config, 'ADA@example.com'))
    expect(disabled).toMatchObject({ code: 0, stdout: expect.stringContaining('ada@example.com is disabled.') })
    expect([(await ada.get('/sources')).status, (await login()).status]).toEqual([401, 401])
    expect(await list()).toContain('\tdisabled\n')
    expect((await said(() => disableUserCommand(config, create.email))).stdout).toContain('was already disabled')
    const entries = (await server.admin.get('/events?name=settings.user.update.after')).body.data
    expect(entries).toMatchObject([{ entity_id: 2, actor: { type: 'system' }, origin: 'cli', changed: ['is_active'] }])

    expect(await said(() => enableUserCommand(config, create.email))).toMatchObject({ code: 0 })
    expect([(await ada.get('/sources')).status, (await login()).status]).toEqual([401, 200])

    await said(() => disableUserCommand(config, create.email))
    const last = await said(() => disableUserCommand(config, 'admin@example.com'))
    expect(last).toEqual({
      code: 1,
      stdout: '',
      stderr: 'This is the last active user who holds every permission.\n',
    })
    const unknown = await said(() => enableUserCommand(config, 'unknown@example.com'))
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('No user has the e-mail address') })
    await place.close()
  })

  it('sets a password from standard input or a random one, and never takes it from the command line', async () => {
    const place = await installed()
    const work = join(place.dataDir, '..')
    const login = async (password: string): Promise<number> =>
      (await place.server.anonymous.post('/login', { email: 'admin@example.com', password, device_name: 'test' }))
        .status
    const set = (input: string, ...options: string[]) =>
      accord(work, ['user', 'set-password', 'admin@example.com', ...options], {}, input)
    const chosen = 'seven green bottles'
    const done = await set(`${chosen}\n`)
    expect(done).toMatchObject({ code: 0, stdout: '' })
    expect(`${done.stdout}${done.stderr}`).not.toContain(chosen)
    expect(await login(chosen)).toBe(200)
    expect((await place.server.admin.get('/sources')).status).toBe(401)
    const random = await set('', '--generate')
    expect(random.stdout).toMatch(/^[\w-]{24}\n$/)
    expect([await login(chosen), await login(random.stdout.trim())]).toEqual([401, 200])
    for (const [input, sentence] of [
      ['', 'Standard input contains no password'],
      ['short\n', 'must have 8 to 128 characters'],
      ['password123\n', 'password: '],
    ] as const)
      expect(await set(input)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(sentence) })
    expect(await set('', chosen)).toMatchObject({ code: 2, stderr: expect.stringContaining('too many arguments') })
    expect(await login(random.stdout.trim())).toBe(200)
    await place.close()
  })
})

describe('a reader that goes away', () => {
  it('is not a failure: the command ends by itself, with its own exit code and no output', async () => {
    await accord(folder, ['install'])
    const port = { ACCORD_PORT: '0' }
    const whole = await accord(folder, ['doctor'], port)
    const cut = await accordCutShort(folder, ['doctor'], port)
    expect([cut.code, cut.stderr]).toEqual([whole.code, ''])
    expect(cut.stdout.length).toBeLessThan(whole.stdout.length)
  })
})

describe('a mistake', () => {
  it('in a setting is one sentence that names the variable', async () => {
    expect(await accord(folder, ['serve'], { ACCORD_PORT: 'eighty' })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ACCORD_PORT must be a whole number from 0 to 65535, not "eighty".\n',
    })
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    [{ ACCORD_SECRET: 'short' }, 'ACCORD_SECRET must have at least 32 characters.\n'],
    [
      { ACCORD_DATABASE_URL: 'mysql://host' },
      'ACCORD_DATABASE_URL must start with sqlite: or postgres://, not "mysql:".\n',
    ],
  ])('in %o is another one', async (environment, stderr) => {
    const start = async () => serveCommand(readConfig(environment as Record<string, string>).config)
    expect(await said(start)).toEqual({ code: 1, stdout: '', stderr })
  })

  it('in a listener module, or a taken port, stops the start with its name', async () => {
    const installed = await installedFolder()
    await installed.stop()
    const { config: listeners } = readConfig({ ACCORD_LISTENERS: './gone.mjs' })
    const missing = await said(() => serveCommand({ ...installed.config, listeners: listeners.listeners, port: 0 }))
    expect(missing.code).toBe(1)
    expect(missing.stderr).toMatch(/^ACCORD_LISTENERS names "\.\/gone\.mjs", which does not exist \(.*\)\.\n$/)

    const server = await listeningServer()
    const port = Number(new URL(server.url).port)
    const taken = await said(() => serveCommand({ ...installed.config, host: '127.0.0.1', port }))
    expect(taken.code).toBe(1)
    expect(taken.stderr).toMatch(/^ACCORD_PORT is \d+, and something else listens there already\./)
    await installed.close()
    await server.close()
  })
})

describe('accord doctor', () => {
  it('says what to do about an empty folder, and touches nothing', async () => {
    const before = await accord(folder, ['doctor'], { ACCORD_PORT: '0' })
    expect(before.code).toBe(1)
    expect(before.stdout).toContain(
      'BROKEN  Documentation: the contract is not published in the data folder. Run: accord install',
    )
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('publishing the contract', () => {
  it('is done by `accord serve` after an upgrade', async () => {
    await accord(folder, ['install'], { ACCORD_ADMIN_PASSWORD: 'correct horse battery' })
    const published = join(folder, 'data', 'openapi.json')
    const current = readFileSync(published, 'utf8')
    writeFileSync(published, JSON.stringify({ openapi: '3.1.0', info: { title: 'The former version' } }))
    const serving = await accordServing(folder, 'serve')
    expect(readFileSync(published, 'utf8')).toBe(current)
    expect(serving.said.stdout).not.toContain('another version of the contract')
    expect((await serving.stop()).code).toBe(0)
  })

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
