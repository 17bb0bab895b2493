// A database that is missing, empty or from another installation: no command may create a new
// database in its place, because the cleanup would then remove all files. Also tests killed first
// installations, which must continue at the next start.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { openStore } from '../../db/store.ts'
import { accord, accordKilledAfter, accordServing } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'
import { isFull } from './serving.ts'

const password = 'correct horse battery'
const settings = { ACCORD_ADMIN_PASSWORD: password, ACCORD_PORT: '0', ACCORD_LOG_LEVEL: 'error' }

let template: string
const folder = useNewFolder('lost')
let backup: string

/** Creates an installation with twenty uploads and a backup of it. */
beforeAll(async () => {
  template = mkdtempSync(join(tmpdir(), 'accord-lost-template-'))
  const serving = await accordServing(template, 'start', settings)
  const post = async (path: string, body: BodyInit, headers: Record<string, string>): Promise<Response> =>
    fetch(`${serving.url}/api/admin${path}`, {
      method: 'POST',
      body,
      headers: { accept: 'application/json', ...headers },
    })
  const json = { 'content-type': 'application/json' }
  const login = await post(
    '/login',
    JSON.stringify({ email: 'admin@example.com', password, device_name: 'test' }),
    json,
  )
  const { data } = (await login.json()) as { data: { token: string } }
  for (let number = 0; number < 20; number++) {
    const form = new FormData()
    form.set('file', new Blob([`upload ${number}`]), `${number}.txt`)
    expect((await post('/files', form, { authorization: `Bearer ${data.token}` })).status).toBe(201)
  }
  await serving.stop()
  backup = mkdtempSync(join(tmpdir(), 'accord-lost-backups-'))
  expect((await accord(template, ['backup', '--to', backup], settings)).code).toBe(0)
})
afterAll(() => {
  for (const each of [template, backup]) rmSync(each, { recursive: true, force: true })
})

const inData = (...names: string[]): string => join(folder, 'data', ...names)

function copyTemplate(): void {
  const copy = (from: string, to: string): void => {
    mkdirSync(to, { mode: 0o700 })
    for (const entry of readdirSync(from, { withFileTypes: true })) {
      if (entry.isDirectory()) copy(join(from, entry.name), join(to, entry.name))
      else copyFileSync(join(from, entry.name), join(to, entry.name))
    }
  }
  copy(join(template, 'data'), inData())
}

const uploads = (at = inData('files')): string[] =>
  readdirSync(at, { recursive: true, encoding: 'utf8' }).filter((name) => /[0-9a-f]{64}$/.test(name))

/** Returns all files in the data folder with their sizes. */
const state = (): string[] =>
  readdirSync(inData(), { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('-shm') && !name.endsWith('-wal'))
    .sort()

const losses: [how: string, lose: () => Promise<void> | void][] = [
  ['is gone', () => rmSync(inData('accord.db'))],
  ['has no byte', () => truncateSync(inData('accord.db'), 0)],
  [
    'has no table',
    () => {
      rmSync(inData('accord.db'))
      const database = new Sqlite(inData('accord.db'))
      database.pragma('journal_mode = WAL')
      database.close()
    },
  ],
  [
    'was never seeded',
    async () => {
      rmSync(inData('accord.db'))
      const store = openStore(`sqlite:${inData('accord.db')}`)
      await migrate(store)
      await store.close()
    },
  ],
]

const commands = [
  ['start'],
  ['serve'],
  ['worker'],
  ['install'],
  ['migrate'],
  ['backup'],
  ['files', 'clean'],
  ['search', 'rebuild'],
  ['jobs', 'list'],
  ['user', 'create', '--name', 'A B', '--email', 'a@example.com', '--role', '1'],
]

describe('a database that', () => {
  it.each(losses)(
    '%s is not replaced by a new one, whatever is run',
    async (_how, lose) => {
      copyTemplate()
      await lose()
      const before = state()
      const chosen = _how === 'is gone' ? commands : commands.slice(0, 5)
      for (const command of chosen) {
        const { code, stderr, stdout } = await accord(folder, command, settings)
        expect([code, stdout], command.join(' ')).toEqual([1, ''])
        expect(stderr, command.join(' ')).toMatch(
          /^ACCORD_DATA_DIR is \S+, and its database \S+ is gone or empty, but files\/, installed, last-backup, secret and openapi\.json of an installation exist\. Nothing was changed\. Restore the last backup, made at \S+: accord restore \S+ --force\. To begin a new installation instead: accord install --new \(it moves the old data aside\)\.\n$/,
        )
        expect(stderr).toContain(backup)
      }
      expect(state()).toEqual(before)
      expect(uploads()).toHaveLength(20)
      const doctor = await accord(folder, ['doctor'], settings)
      expect(doctor.code).toBe(1)
      expect(doctor.stdout).toMatch(
        /BROKEN {2}Database \S+: it is gone or empty, but files\/.* exist\. Stop the server\./,
      )
    },
    120_000,
  )

  it('has lost the rows of its files keeps their bytes', async () => {
    copyTemplate()
    const database = new Sqlite(inData('accord.db'))
    database.exec('delete from files')
    database.close()
    const long = new Date(Date.now() - 7_200_000)
    for (const name of uploads()) utimesSync(inData('files', name), long, long)
    const { code, stderr } = await accord(folder, ['files', 'clean'], settings)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^.*Kept 20 files that belong to no record/s)])
    expect(uploads()).toHaveLength(20)
    const all = await accord(folder, ['files', 'clean', '--all'], settings)
    expect(all).toMatchObject({ code: 0, stderr: '' })
    expect(uploads().every((name) => name.startsWith('trash/'))).toBe(true)
    expect(uploads()).toHaveLength(20)
  })

  it('is gone comes back from the backup that the refusal names', async () => {
    copyTemplate()
    rmSync(inData('accord.db'))
    const { stderr } = await accord(folder, ['start'], settings)
    const [, ...restore] = /: accord (restore) (\S+) (--force)\./.exec(stderr) ?? []
    expect((await accord(folder, restore, settings)).code).toBe(0)
    const serving = await accordServing(folder, 'start', settings)
    expect((await serving.stop()).code).toBe(0)
    expect(uploads()).toHaveLength(20)
  })

  it('is elsewhere (ACCORD_DATABASE_URL), on a disk that is not mounted, is not replaced either', async () => {
    copyTemplate()
    mkdirSync(join(folder, 'disk'))
    renameSync(inData('accord.db'), join(folder, 'disk', 'crm.db'))
    const elsewhere = { ...settings, ACCORD_DATABASE_URL: `sqlite:${join(folder, 'disk', 'crm.db')}` }
    const serving = await accordServing(folder, 'start', elsewhere)
    expect((await serving.stop()).code).toBe(0)
    renameSync(join(folder, 'disk'), join(folder, 'unmounted'))
    for (const environment of [elsewhere, { ...elsewhere, ACCORD_SECRET: 'x'.repeat(40) }]) {
      const { code, stderr } = await accord(folder, ['start'], environment)
      expect([code, stderr]).toEqual([1, expect.stringContaining('crm.db is gone or empty, but files/')])
    }
    expect(existsSync(join(folder, 'disk'))).toBe(false)
  })

  it('belongs to another installation is not taken for this one, nor is one in memory', async () => {
    copyTemplate()
    const other = join(folder, 'other')
    mkdirSync(other)
    expect((await accord(other, ['install'], settings)).code).toBe(0)
    const moved = inData('moved.db')
    renameSync(inData('accord.db'), moved)
    copyFileSync(join(other, 'data', 'accord.db'), inData('accord.db'))
    const swapped = await accord(folder, ['start'], settings)
    expect([swapped.code, swapped.stderr]).toEqual([1, expect.stringContaining('belongs to another installation')])
    const memory = await accord(folder, ['start'], { ...settings, ACCORD_DATABASE_URL: 'sqlite::memory:' })
    expect([memory.code, memory.stderr]).toEqual([1, expect.stringContaining('is in memory, but the folder contains')])
    renameSync(moved, inData('accord.db'))
    expect((await accord(folder, ['install'], settings)).code).toBe(0)
    expect(uploads()).toHaveLength(20)
  })
})

describe('accord install --new', () => {
  it('moves all that is there aside and begins a new installation; nothing is removed', async () => {
    copyTemplate()
    rmSync(inData('accord.db'))
    const secret = readFileSync(inData('secret'), 'utf8')
    const { code, stdout } = await accord(folder, ['install', '--new'], settings)
    expect(code).toBe(0)
    const aside = /Moved the former data to (\S+)\.\n/.exec(stdout)?.[1] ?? ''
    expect(readdirSync(aside).sort()).toEqual(['files', 'installed', 'last-backup', 'openapi.json', 'secret'])
    expect(uploads(join(aside, 'files'))).toHaveLength(20)
    expect(readFileSync(join(aside, 'secret'), 'utf8')).toBe(secret)
    expect(readFileSync(inData('secret'), 'utf8')).not.toBe(secret)
    const serving = await accordServing(folder, 'start', settings)
    expect((await serving.stop()).code).toBe(0)
  })

  it('moves nothing while a server runs', async () => {
    copyTemplate()
    const serving = await accordServing(folder, 'start', settings)
    const { code, stderr } = await accord(folder, ['install', '--new'], settings)
    expect([code, stderr]).toEqual([1, expect.stringContaining('has')])
    expect(stderr).toContain('open. Stop it first; nothing was changed.')
    expect((await serving.stop()).code).toBe(0)
    expect(uploads()).toHaveLength(20)
  })
})

describe('a first installation', () => {
  it(
    'that was killed at any moment goes on with the next start',
    async () => {
      // The kills are distributed over the whole installation, which takes about a second.
      const stepMs = isFull ? 50 : 250
      for (let afterMs = stepMs; afterMs <= 1_500; afterMs += stepMs) {
        const { code } = await accordKilledAfter(folder, ['install'], afterMs, settings)
        const about = `killed after ${afterMs} ms: ${existsSync(inData()) ? readdirSync(inData()) : 'nothing'}`
        const again = await accord(folder, ['install'], settings)
        expect([again.code, again.stderr], about).toEqual([0, ''])
        expect(readdirSync(inData()), about).toContain('installed')
        expect(readdirSync(inData()), about).not.toContain('installing')
        rmSync(join(folder, 'data'), { recursive: true })
        if (code === 0) break
        await sleep(0)
      }
    },
    isFull ? 600_000 : 120_000,
  )

  it.each([
    ['before the database', []],
    ['with an empty database', ['accord.db']],
    ['with a secret and no database', ['secret']],
    ['with both', ['accord.db', 'secret']],
  ])('that was cut off %s goes on', async (_when, names) => {
    mkdirSync(inData(), { mode: 0o700 })
    for (const name of ['installing', ...names])
      writeFileSync(inData(name), name === 'secret' ? `${'x'.repeat(43)}\n` : '')
    expect(await accord(folder, ['install'], settings)).toMatchObject({ code: 0, stderr: '' })
    if (names.includes('secret')) expect(readFileSync(inData('secret'), 'utf8')).toBe(`${'x'.repeat(43)}\n`)
  })
})
