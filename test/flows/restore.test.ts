// `accord restore`: checks a whole backup before it changes data, and keeps the previous data.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openCopy } from '../../db/store.ts'
import { backUp } from '../../src/commands/backup/backup.ts'
import { backupName, readManifest } from '../../src/commands/backup/manifest.ts'
import { restoreCommand } from '../../src/commands/restore/restore.ts'
import type { Config } from '../../src/config/config.ts'
import { openData } from '../../src/installation/data-folder.ts'
import { placeOf } from '../../src/kernel/files/file-store.ts'
import { nameOf, newOwnerId, self } from '../../src/kernel/runtime/process-identity.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { filled, type Installed, said } from '../support/installed.ts'

let place: Installed
/**
 * The paths of a backup with a record, a file and an encrypted value, and of the same backup
 * without the secret.
 */
let [whole, bare] = ['', '']
const root = useNewFolder('restore')
let uploaded = ''
beforeAll(async () => {
  place = await filled('Quarterly figures')
  const at = '2026-03-01T09:30:00.000Z'
  const secret = { user_id: 1, secret_hash: 'x', expires_at: '2099-01-01T00:00:00.000Z', created_at: at }
  const { db } = place.store
  await db
    .insertInto('sessions')
    .values({ ...secret, last_used_at: at, updated_at: at })
    .execute()
  await db.insertInto('password_resets').values(secret).execute()
  whole = (await backUp(place.config, join(place.dataDir, 'backups'), true)).path
  bare = (await backUp(place.config, join(place.dataDir, 'bare'), false)).path
  uploaded = Object.keys(readManifest(whole).files)[0] ?? ''
  await place.server.admin.put('/leads/1', { title: 'Changed since' })
})
afterAll(() => place.close())

const into = (changes: Partial<Config> = {}): Config => {
  const dataDir = join(root, 'data')
  return testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}`, ...changes })
}
const restore = (backup: string, options = {}, config = into()) => said(() => restoreCommand(config, backup, options))

async function titlesIn(config: Config): Promise<(string | null)[]> {
  const store = await openData(config)
  const rows = await store.db.selectFrom('leads').select('title').execute()
  await store.close()
  return rows.map(({ title }) => title)
}

describe('accord restore --verify', () => {
  it('rehearses a backup and leaves nothing of it anywhere', async () => {
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith('accord-verify-'))
    const { stdout, stderr, code } = await restore(whole, { verify: true })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^Backup of \S+, Accord CRM [\w.-]+: \d+ rows of \d+ tables, 1 files, [\d.]+ MB; migration \d{4}_\w+, event \d+\.\nThe backup is complete/,
    )
    expect(readdirSync(root)).toEqual([])
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('accord-verify-'))).toEqual(before)
  })

  it('says which secret is needed for one without a secret, and knows the wrong one', async () => {
    const without = await restore(bare, { verify: true })
    expect(without).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('No secret decrypts its 1 encrypted values'),
    })
    const right = await restore(bare, { verify: true }, place.config)
    expect(right.stdout).not.toContain('No secret')
    const wrong = await restore(bare, { verify: true }, into({ secret: 'w'.repeat(32) }))
    expect(wrong).toEqual({
      code: 1,
      stdout: '',
      stderr: `ACCORD_SECRET is not the secret that ${bare} was made with. Set that secret.\n`,
    })
  })
})

describe('accord restore', () => {
  it('brings everything back into an empty place', async () => {
    const { stdout, stderr, code } = await restore(whole)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /Restored into \S+ in [\d.]+ s\.\nPasswords, tokens and permissions .* valid again\. .*\nJobs .* may be sent twice\.\nEvent numbers .*\nServe it with: accord start\n$/,
    )
    const { dataDir } = into()
    expect(readdirSync(dataDir).sort()).toEqual(['accord.db', 'files', 'installed', 'openapi.json', 'secret'])
    expect(await titlesIn(into())).toEqual(['Backed up'])
    expect(readFileSync(placeOf(join(dataDir, 'files'), uploaded), 'utf8')).toBe('Quarterly figures')
  })

  it('brings tokens back, but no cookie sessions and no password reset links', async () => {
    await restore(whole)
    const store = await openData(into())
    const count = async (table: 'sessions' | 'password_resets' | 'tokens') =>
      (await store.db.selectFrom(table).select('id').execute()).length
    expect([await count('sessions'), await count('password_resets')]).toEqual([0, 0])
    expect(await count('tokens')).toBeGreaterThan(0)
    await store.close()
    const copy = openCopy(join(whole, 'accord.db'))
    const was = [...(await copy.db.selectFrom('sessions').select('id').execute())]
    was.push(...(await copy.db.selectFrom('password_resets').select('id').execute()))
    await copy.close()
    expect(was).toHaveLength(2)
  })

  it('refuses to take the place of data unless forced, and moves them aside then', async () => {
    await restore(whole)
    const config = into()
    const store = await openData(config)
    await store.db.updateTable('leads').set({ title: 'Since then' }).execute()
    await store.close()
    const refused = await restore(whole)
    expect(refused.stderr).toMatch(
      /^\S+ already contains data\. To move them aside and restore, run: accord restore \S+ --force\./,
    )
    expect(await titlesIn(config)).toEqual(['Since then'])

    // SQLite would use these leftover files as the log of the restored database.
    writeFileSync(join(config.dataDir, 'accord.db-journal'), 'stale')
    const { stdout, code } = await restore(whole, { force: true })
    expect(code).toBe(0)
    const aside = /The former data are in (\S+);/.exec(stdout)?.[1] ?? ''
    expect(await titlesIn(config)).toEqual(['Backed up'])
    expect(await titlesIn(into({ dataDir: aside, databaseUrl: `sqlite:${join(aside, 'accord.db')}` }))).toEqual([
      'Since then',
    ])
    expect(readdirSync(config.dataDir).filter((name) => /-(wal|shm|journal)$|restoring|partial/.test(name))).toEqual([])
    expect(readFileSync(placeOf(join(aside, 'files'), uploaded), 'utf8')).toBe('Quarterly figures')
  })

  it('removes what a killed restore has left, and nothing of one that runs', async () => {
    await restore(whole)
    const config = into()
    const left = (at: string) => [
      join(config.dataDir, `.restore-${at}.partial`),
      join(config.dataDir, `.restore-${at}.db.partial`),
    ]
    for (const [at, owner] of [
      ['killed', nameOf({ ...self, pid: 4_194_303, began: '' }, 'x')],
      ['running', newOwnerId()],
    ] as const) {
      const [folder = '', database = ''] = left(at)
      mkdirSync(folder)
      writeFileSync(join(folder, 'owner'), `${owner}\n`)
      writeFileSync(database, 'half')
    }
    const { code } = await restore(whole, { force: true })
    expect(code).toBe(0)
    expect([...left('killed'), ...left('running')].map((path) => existsSync(path))).toEqual([false, false, true, true])
  })

  it('moves aside what a killed server had only in its log', async () => {
    await restore(whole)
    const config = into()
    const store = await openData(config)
    await store.db.updateTable('leads').set({ title: 'In the log' }).execute()
    // Simulates a kill: the files are copied while the database is open.
    const killed = join(root, 'killed')
    cpSync(config.dataDir, killed, { recursive: true })
    await store.close()
    expect(readdirSync(killed)).toContain('accord.db-wal')
    const there = into({ dataDir: killed, databaseUrl: `sqlite:${join(killed, 'accord.db')}` })
    const { stdout, code } = await restore(whole, { force: true }, there)
    expect(code).toBe(0)
    const aside = /The former data are in (\S+);/.exec(stdout)?.[1] ?? ''
    expect(await titlesIn(there)).toEqual(['Backed up'])
    expect(await titlesIn({ ...there, dataDir: aside, databaseUrl: `sqlite:${join(aside, 'accord.db')}` })).toEqual([
      'In the log',
    ])
    expect(readdirSync(killed).filter((name) => /-(wal|shm|journal)$/.test(name))).toEqual([])
  })

  it('refuses while a server has the database open, and touches nothing', async () => {
    const { code, stderr } = await restore(whole, { force: true }, place.config)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^A server, a worker or another program has \S+ open\. Stop it first; nothing was changed\.\n$/,
      ),
    ])
    expect((await place.server.admin.get('/leads/1')).body.data.title).toBe('Changed since')
    expect(readdirSync(place.dataDir).filter((name) => /restor/.test(name))).toEqual([])
  })

  it('keeps the secret that is there when it is the one of a backup without', async () => {
    await restore(whole)
    const { stdout } = await restore(bare, { force: true })
    expect(stdout).not.toContain('No secret')
    expect(existsSync(join(into().dataDir, 'secret'))).toBe(true)
  })

  it('that was interrupted keeps the server from starting until it is repeated', async () => {
    await restore(whole)
    const mark = join(into().dataDir, 'restoring')
    writeFileSync(mark, 'elsewhere:place:1:1:x\n')
    await expect(openData(into())).rejects.toThrow('a restore is unfinished')
    // A process on another machine may still be running.
    expect((await restore(whole)).stderr).toMatch(
      /^Another restore is running on \S+, or was interrupted .* run this again with --force\.\n$/,
    )
    const [host, at] = newOwnerId().split(':')
    writeFileSync(mark, `${host}:${at}:999999:1:x\n`)
    expect((await restore(whole)).code).toBe(0)
    expect(existsSync(mark)).toBe(false)
    expect(await titlesIn(into())).toEqual(['Backed up'])
  })

  it.each<[string, (host: string, place: string) => string, string[]]>([
    ['by a power cut', (host) => `${host}:0b00-another/4026531836:1:1:x\n`, ['plain', 'forced']],
    ['before its mark was on the disk', () => '', ['plain', 'forced']],
    ['in a container that is gone', (host, place) => `${host}:${place.split('/')[0]}/99:1:1:x\n`, ['forced']],
    ['on another machine', (_host, place) => `elsewhere:${place}:1:1:x\n`, ['forced']],
  ])('that was cut off %s can be run again as it says', async (_what, owner, ways) => {
    const mark = join(into().dataDir, 'restoring')
    const [host = '', at = ''] = newOwnerId().split(':')
    mkdirSync(into().dataDir)
    for (const way of ['plain', 'forced']) {
      writeFileSync(mark, owner(host, at))
      const { code } = await restore(whole, { force: way === 'forced' })
      expect([way, code, existsSync(mark)]).toEqual(ways.includes(way) ? [way, 0, false] : [way, 1, true])
    }
    expect(await titlesIn(into())).toEqual(['Backed up'])
  })

  it('is not done over one that is seen to be at work, not even by force', async () => {
    await restore(whole)
    const mark = join(into().dataDir, 'restoring')
    writeFileSync(mark, `${newOwnerId()}\n`)
    expect(await restore(bare, { force: true })).toMatchObject({
      code: 1,
      stderr: `Another restore is running on ${into().dataDir}.\n`,
    })
    expect(existsSync(mark)).toBe(true)
    rmSync(mark)
    expect(await titlesIn(into())).toEqual(['Backed up'])
  })

  it('refuses a folder without a backup with a sentence', async () => {
    expect((await restore(join(root, 'nowhere'))).stderr).toBe(`${join(root, 'nowhere')} does not exist.\n`)
    writeFileSync(join(root, `accord-${backupName('2026-01-01T00:00:00.000Z')}.db`), '')
    const copy = await restore(join(root, `accord-${backupName('2026-01-01T00:00:00.000Z')}.db`))
    expect(copy.stderr).toContain('To use a copy made before a migration, stop the server')
    expect((await restore(whole, {}, into({ databaseUrl: 'sqlite::memory:' }))).stderr).toContain(
      'A database in memory',
    )
  })
})
