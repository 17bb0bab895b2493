// `accord backup`: a backup contains all data of one moment, and gets its final name only when it
// is complete.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { openCopy } from '../../db/store.ts'
import { backupCommand, permissionError } from '../../src/commands/backup/backup.ts'
import { backupName, readManifest } from '../../src/commands/backup/manifest.ts'
import { placeOf } from '../../src/kernel/files/file-store.ts'
import { testConfig } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { installed, said } from '../support/installed.ts'
import { useNew } from '../support/using.ts'

const place = useNew(installed)

const folderOf = (name = 'backups'): string => join(place.dataDir, name)
const backup = (options = {}) => said(() => backupCommand(place.config, options))
const pathIn = (stdout: string): string => /^Backed up to (.*)$/m.exec(stdout)?.[1] ?? ''
const modesIn = (folder: string): string[] =>
  [folder, ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))].map(
    (path) => {
      const found = statSync(path)
      return `${found.isDirectory() ? 'folder' : 'file'} ${(found.mode & 0o777).toString(8)}`
    },
  )

async function upload(content: string): Promise<{ id: number; sha256: string }> {
  const { body, headers } = await form({ file: file('figures.txt', content) })
  const { id } = (await place.server.admin.post('/files', body, { headers })).body.data
  const row = await place.server.store.db
    .selectFrom('files')
    .select('sha256')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return { id, sha256: row.sha256 }
}

describe('accord backup', () => {
  it('copies rows, files, contract and secret of a running server, for the eyes of the owner alone', async () => {
    const lead = await given(place.server.admin).lead()
    const { sha256 } = await upload('Quarterly figures')
    const { stdout, stderr, code } = await backup()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^\d+ rows of \d+ tables \([\d.]+ MB\) and 1 files/m)
    expect(stdout).toContain('it can be read in full by anyone who has it')
    const path = pathIn(stdout)
    expect(path.startsWith(folderOf())).toBe(true)
    expect(readdirSync(path).sort()).toEqual(['accord.db', 'files', 'manifest.json', 'openapi.json', 'secret'])
    expect([...new Set(modesIn(path))].sort()).toEqual(['file 600', 'folder 700'])
    expect(readFileSync(placeOf(join(path, 'files'), sha256), 'utf8')).toBe('Quarterly figures')
    expect(readFileSync(join(path, 'secret'), 'utf8')).toBe(readFileSync(join(place.dataDir, 'secret'), 'utf8'))
    const manifest = readManifest(path)
    expect(manifest).toMatchObject({
      engine: 'sqlite',
      files: { [sha256]: 17 },
      lost_files: [],
      secret: { kept: 'here' },
    })
    expect(manifest.tables.leads?.rows).toBe(1)
    expect(manifest.newest_event).toBeGreaterThan(0)
    expect(JSON.stringify(manifest)).not.toContain('test secret')
    const copy = openCopy(join(path, 'accord.db'))
    expect(await copy.db.selectFrom('leads').select('title').execute()).toEqual([{ title: lead.title }])
    await copy.close()
    expect(readdirSync(path)).toHaveLength(5)
  })

  it('hashes rows, not files: the same rows have the same hash, a changed one has another', async () => {
    const tables = async () => readManifest(pathIn((await backup()).stdout)).tables
    const lead = await given(place.server.admin).lead()
    const [first, second] = [await tables(), await tables()]
    expect(second).toEqual(first)
    await place.server.admin.put(`/leads/${lead.id}`, { title: 'Another' })
    const third = await tables()
    expect(third.leads?.rows).toBe(1)
    expect(third.leads?.sha256).not.toBe(first.leads?.sha256)
    expect(third.persons).toEqual(first.persons)
  })

  it('leaves the secret out when asked, or when it is set by the environment, and says so', async () => {
    const without = await backup({ withoutSecret: true })
    expect(existsSync(join(pathIn(without.stdout), 'secret'))).toBe(false)
    expect(without.stdout).toContain('The backup does not contain the secret. Store it elsewhere')
    const config = { ...place.config, secret: 'another secret of thirty-two characters' }
    const set = await said(() => backupCommand(config, {}))
    expect(existsSync(join(pathIn(set.stdout), 'secret'))).toBe(false)
    expect(set.stdout).toContain('The backup does not contain ACCORD_SECRET')
    expect(readManifest(pathIn(set.stdout)).secret.check).not.toBe(readManifest(pathIn(without.stdout)).secret.check)
  })

  it('goes on without bytes that the installation has lost, and says that they are not there', async () => {
    const [kept, lost] = [await upload('One'), await upload('Two')]
    rmSync(placeOf(folderOf('files'), lost.sha256))
    const { stdout, stderr, code } = await backup()
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('The contents of 1 files are missing from the data folder'),
    ])
    expect(readManifest(pathIn(stdout))).toMatchObject({ files: { [kept.sha256]: 3 }, lost_files: [lost.sha256] })
  })

  it('takes along no bytes that no row refers to', async () => {
    const [kept, gone] = [await upload('One'), await upload('Two')]
    await place.server.store.db.deleteFrom('files').where('id', '=', gone.id).execute()
    expect(existsSync(placeOf(folderOf('files'), gone.sha256))).toBe(true)
    expect(Object.keys(readManifest(pathIn((await backup()).stdout)).files)).toEqual([kept.sha256])
  })

  it('keeps as many complete backups as asked, and touches nothing else', async () => {
    const to = folderOf('elsewhere')
    const first = pathIn((await backup({ to })).stdout)
    const half = join(to, backupName('2020-01-01T00:00:00.000Z'))
    mkdirSync(half)
    writeFileSync(join(to, 'notes.txt'), 'mine')
    const second = pathIn((await backup({ to })).stdout)
    const { stdout } = await backup({ to, keep: '2' })
    expect(stdout).toContain('Removed 1 older backup.')
    expect([existsSync(first), existsSync(second), existsSync(half)]).toEqual([false, true, true])
    expect(readdirSync(to).filter((name) => name.startsWith('.'))).toEqual([])
    expect(readdirSync(to)).toContain('notes.txt')
    expect((await backup({ to, keep: 'none' })).stderr).toBe('--keep must be a whole number from 1, not "none".\n')
  })

  it('leaves alone what other installations keep in the same folder, and says so', async () => {
    const to = folderOf('shared')
    const { db } = place.server.store
    const first = pathIn((await backup({ to })).stdout)
    // Simulates another installation with almost the same creation time.
    const migration = db.updateTable('migrations').where('name', '=', '0004_catalogue')
    await migration.set({ applied_at: '2026-01-01T00:00:00.000Z' }).execute()
    const { stdout } = await backup({ to, keep: '1' })
    expect(stdout).toContain(`Kept 1 backup of other installations in ${to}.`)
    expect(stdout).not.toContain('Removed')
    const second = pathIn(stdout)
    const third = await backup({ to, keep: '1' })
    expect(third.stdout).toContain('Removed 1 older backup.\nKept 1 backup of other')
    expect([existsSync(first), existsSync(second)]).toEqual([true, false])
    const ids = [first, pathIn(third.stdout)].map((path) => readManifest(path).installation)
    expect(ids).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)])
    expect(new Set(ids).size).toBe(2)
  })

  it("names what this user may not use: the folder of backups, or another user's bytes", () => {
    const denied = (path?: string) =>
      permissionError(Object.assign(new Error('x'), { code: 'EACCES', path }), '/mnt/b')?.message
    const write = 'This user cannot write to /mnt/b. Choose another folder with --to.'
    expect([denied('/mnt/b/.x.partial'), denied('/mnt/b'), denied('/mnt'), denied()]).toEqual(Array(4).fill(write))
    expect([denied('/data/files/ab/abc'), denied('/mnt/bytes/ab')]).toEqual([
      'This user cannot read /data/files/ab/abc. Run accord backup as the user that runs the server.',
      'This user cannot read /mnt/bytes/ab. Run accord backup as the user that runs the server.',
    ])
    expect(permissionError(new Error('x'), '/mnt/b')).toBeNull()
  })

  it('needs room before it begins', async () => {
    const { id } = await upload('Quarterly figures')
    await place.server.store.db.updateTable('files').set({ size: 10e12 }).where('id', '=', id).execute()
    const { stderr, code } = await backup()
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^There is not enough space for a backup: [\d,.]+ MB are needed in /),
    ])
    expect(readdirSync(folderOf())).toEqual([])
  })

  it('leaves nothing behind when it fails, nor makes a backup of a database that is damaged', async () => {
    const { db } = place.server.store
    await sql`pragma foreign_keys = off`.execute(db)
    await sql`insert into user_groups (user_id, group_id) values (999, 999)`.execute(db)
    const { stderr, code } = await backup()
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^Nothing was backed up\. The copy is damaged: its database is corrupt: Row \d+ of user_groups .* Run: accord doctor\n$/,
    )
    expect(readdirSync(folderOf())).toEqual([])
  })

  it('refuses what cannot be backed up with a sentence', async () => {
    const inMemory = await said(() => backupCommand(testConfig(), {}))
    expect(inMemory).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('A database in memory') })
    const missing = await said(() =>
      backupCommand(testConfig({ databaseUrl: 'sqlite:/nowhere/accord.db', dataDir: folderOf('none') }), {}),
    )
    expect(missing.stderr).toBe(
      `There is no database at sqlite:/nowhere/accord.db. Run it in the folder of the installation, or set ACCORD_DATA_DIR. For a new installation, run: accord install\n`,
    )
    writeFileSync(folderOf('taken'), '')
    chmodSync(folderOf('taken'), 0o600)
    expect((await backup({ to: folderOf('taken') })).code).toBe(1)
  })
})
