// Commands that meet a database in use, or none: the first line says in words what is the matter.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { migrateToCommand } from '../../src/commands/migrate-to.ts'
import { serveCommand } from '../../src/commands/serve.ts'
import { listUsersCommand } from '../../src/commands/user.ts'
import { type Folder, installedFolder, said } from '../support/installed.ts'

let folder: Folder
beforeEach(async () => {
  folder = await installedFolder()
})
afterEach(() => folder.close())

const elsewhere = 'crm-2:other-boot/1:4711:99:worker-id'

describe('a database in use', () => {
  it('that another program has locked is not waited for without a word', { timeout: 60_000 }, async () => {
    await folder.stop()
    const other = new Sqlite(join(folder.dataDir, 'accord.db'))
    other.pragma('locking_mode = exclusive')
    other.exec('begin exclusive')
    const { code, stderr } = await said(() => serveCommand(folder.config))
    other.close()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/another program has locked .*End that program/i)])
  })

  it('is not moved while a process of another machine holds a lease', async () => {
    const lock = { name: 'worker', locked_by: elsewhere, locked_until: '2999-01-01T00:00:00.000Z' }
    await folder.store.db.insertInto('locks').values(lock).execute()
    await folder.stop()
    const { code, stderr } = await said(() => migrateToCommand(folder.config, 'postgres://u:p@127.0.0.1:1/x', {}))
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^A server or worker holds a lease in sqlite:\S+: process 4711 on crm-2 \(until 2999-01-01T00:00:00\.000Z\)\. Stop it/,
      ),
    ])
  })
})

describe('a folder without an installation', () => {
  it('is not served, and stays as it is', async () => {
    const dataDir = join(folder.dataDir, 'new')
    const config = { ...folder.config, dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}` }
    const { code, stderr } = await said(() => serveCommand(config))
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^Nothing is installed in \S+new, .* Run: accord start, /),
    ])
    expect(existsSync(dataDir)).toBe(false)
  })

  it('that is a file is named', async () => {
    const dataDir = join(folder.dataDir, 'a-file')
    mkdirSync(folder.dataDir, { recursive: true })
    writeFileSync(dataDir, 'text')
    const config = { ...folder.config, dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}` }
    const { code, stderr } = await said(async () => listUsersCommand(config, {}))
    expect([code, stderr]).toEqual([1, `ACCORD_DATA_DIR is ${dataDir}, which is a file. Set it to a folder.\n`])
  })
})
