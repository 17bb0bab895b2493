// `accord restore` refuses a damaged backup and describes the damage, without changing data.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openCopy, openStore } from '../../db/store.ts'
import { tableChecksums } from '../../db/table-checksums.ts'
import { backUp } from '../../src/commands/backup/backup.ts'
import { hashFile } from '../../src/commands/backup/bytes.ts'
import { readManifest, writeManifest } from '../../src/commands/backup/manifest.ts'
import { restoreCommand } from '../../src/commands/restore/restore.ts'
import type { Config } from '../../src/config/config.ts'
import { placeOf } from '../../src/kernel/files/file-store.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { filled, type Installed, said } from '../support/installed.ts'

let place: Installed
/** The path of a backup with a record, a file and an encrypted value. */
let whole = ''
const root = useNewFolder('restore')
let uploaded = ''
beforeAll(async () => {
  place = await filled('Quarterly figures')
  whole = (await backUp(place.config, join(place.dataDir, 'backups'), true)).path
  uploaded = Object.keys(readManifest(whole).files)[0] ?? ''
})
afterAll(() => place.close())

const into = (changes: Partial<Config> = {}): Config => {
  const dataDir = join(root, 'data')
  return testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}`, ...changes })
}
const restore = (backup: string, options = {}, config = into()) => said(() => restoreCommand(config, backup, options))

describe('a damaged backup', () => {
  const flip = (path: string, at: number): void => {
    const bytes = readFileSync(path)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(path, bytes)
  }
  const retold = (folder: string, change: (manifest: ReturnType<typeof readManifest>) => object): void => {
    const manifest = readManifest(folder)
    rmSync(join(folder, 'manifest.json'))
    const { format, product, version, checksum, ...contents } = { ...manifest, ...change(manifest) } as typeof manifest
    writeManifest(folder, contents)
  }

  it.each<[string, (folder: string) => void, RegExp]>([
    [
      'has a flipped byte in its database',
      (at) => flip(join(at, 'accord.db'), 5000),
      /accord\.db was changed after the backup/,
    ],
    [
      'has a truncated database',
      (at) => truncateSync(join(at, 'accord.db'), 4096),
      /accord\.db has 4096 bytes and should have \d+/,
    ],
    ['has no database', (at) => rmSync(join(at, 'accord.db')), /accord\.db is missing/],
    [
      'has a flipped byte in a file',
      (at) => flip(placeOf(join(at, 'files'), uploaded), 3),
      /[0-9a-f]{2}\/[0-9a-f]{64} was changed after the backup/,
    ],
    [
      'has lost a file',
      (at) => rmSync(placeOf(join(at, 'files'), uploaded)),
      /files\/[0-9a-f]{2}\/[0-9a-f]{64} is missing/,
    ],
    [
      'has a flipped byte in its secret',
      (at) => flip(join(at, 'secret'), 3),
      /its secret was changed after the backup/,
    ],
    ['has lost its secret', (at) => rmSync(join(at, 'secret')), /is damaged: secret is missing/],
    ['has a changed contract', (at) => flip(join(at, 'openapi.json'), 9), /openapi\.json was changed after the backup/],
    [
      'has a changed manifest',
      (at) =>
        writeFileSync(
          join(at, 'manifest.json'),
          readFileSync(join(at, 'manifest.json'), 'utf8').replace('"rows": 1', '"rows": 2'),
        ),
      /manifest\.json was changed after the backup was made/,
    ],
    ['has half a manifest', (at) => truncateSync(join(at, 'manifest.json'), 100), /manifest\.json is not valid JSON/],
    ['has no manifest', (at) => rmSync(join(at, 'manifest.json')), /is not a backup: it has no manifest\.json/],
    [
      'is of a later format',
      (at) =>
        writeFileSync(join(at, 'manifest.json'), JSON.stringify({ ...readManifest(at), format: 2, version: '9.0.0' })),
      /has the backup format 2, and this program .* Restore it with Accord CRM 9\.0\.0/,
    ],
    [
      'tells of other rows than it has',
      (at) =>
        retold(at, ({ tables }) => ({ tables: { ...tables, leads: { ...tables.leads, sha256: 'f'.repeat(64) } } })),
      /the rows of leads were changed after the backup/,
    ],
    [
      'tells of more rows than it has',
      (at) => retold(at, ({ tables }) => ({ tables: { ...tables, leads: { ...tables.leads, rows: 7 } } })),
      /the table leads has 1 rows and should have 7/,
    ],
    [
      'tells of fewer files than its rows',
      (at) => retold(at, () => ({ files: {} })),
      /the contents of file [0-9a-f]{64} are missing/,
    ],
    [
      'names a file outside of it',
      (at) => retold(at, () => ({ files: { '../../secret': 1 } })),
      /names the file \.\.\/\.\.\/secret, which does not belong to a backup/,
    ],
  ])('that %s is refused with that, and nothing is touched', async (_what, damage, sentence) => {
    const folder = join(root, 'damaged')
    cpSync(whole, folder, { recursive: true })
    damage(folder)
    for (const options of [{ verify: true }, {}]) {
      const { stdout, stderr, code } = await restore(folder, options)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(sentence)
      expect(stderr.trimEnd().split('\n')).toHaveLength(1)
      expect(existsSync(join(root, 'data')) ? readdirSync(join(root, 'data')) : []).toEqual([])
    }
  })

  it('of a newer version is refused by name', async () => {
    const folder = join(root, 'newer')
    cpSync(whole, folder, { recursive: true })
    const path = join(folder, 'accord.db')
    const store = openStore(`sqlite:${path}`)
    await store.db.insertInto('migrations').values({ name: '9999_future', applied_at: 'later' }).execute()
    await store.close()
    const copy = openCopy(path)
    const told = { tables: await tableChecksums(copy), last_migration: '9999_future', database: await hashFile(path) }
    await copy.close()
    retold(folder, () => told)
    const { stderr } = await restore(folder, { verify: true })
    expect(stderr).toBe(
      'This database has the migration 9999_future, which this version of Accord CRM does not know: a newer version or a release candidate has migrated it. Install that version, or restore a backup made before it.\n',
    )
  })
})
