// `accord doctor`: each test breaks one thing and checks the finding and the advice. All other
// checks must stay ok.
import { createHash, randomUUID } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrations } from '../../db/migrate.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { openStore } from '../../db/store.ts'
import { backUp } from '../../src/commands/backup/backup.ts'
import { Hint } from '../../src/commands/doctor/check-result.ts'
import { checkFreeSpace } from '../../src/commands/doctor/data.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { checkNodeVersion } from '../../src/commands/doctor/program.ts'
import { listJobsCommand } from '../../src/commands/maintenance.ts'
import type { Config } from '../../src/config/config.ts'
import { createEncryption } from '../../src/kernel/auth/encryption.ts'
import { placeOf } from '../../src/kernel/files/file-store.ts'
import { nameOf, newOwnerId, self } from '../../src/kernel/runtime/process-identity.ts'
import { startImap } from '../support/imap.ts'
import { installedFolder, type Said, said, testSecret } from '../support/installed.ts'
import { useNew, useOne } from '../support/using.ts'

const place = useNew(() => installedFolder({ port: 0 }))

const inData = (...names: string[]): string => join(place.dataDir, ...names)
const doctor = (changes: Partial<Config> = {}, options = {}): Promise<Said> =>
  said(() => doctorCommand({ ...place.config, ...changes }, options))

/**
 * Returns the findings, without ok lines, the last line, and the hint about missing backups, which
 * every new installation gets.
 */
async function findings(changes: Partial<Config> = {}, options = {}): Promise<string[]> {
  const { stdout, code } = await doctor(changes, options)
  const lines = stdout.trimEnd().split('\n').slice(0, -1)
  const found = lines.filter((line) => !line.startsWith('ok ') && !line.startsWith('hint    Backups: there is none'))
  expect(code).toBe(found.some((line) => line.startsWith('BROKEN')) ? 1 : 0)
  return found
}

const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString()
const db = () => place.store.db

/** Inserts the lock row of a running server or worker. */
const atWork = () =>
  db()
    .insertInto('locks')
    .values({ name: 'worker', locked_by: newOwnerId(), locked_until: ago(-5) })
    .execute()

async function fileOf(content: string): Promise<string> {
  const sha256 = createHash('sha256').update(content).digest('hex')
  const path = placeOf(inData('files'), sha256)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  const row = { name: 'a.txt', size: content.length, content_type: 'text/plain', sha256, created_at: ago(0) }
  await db()
    .insertInto('files')
    .values({ ...row, user_id: 1, owner_type: null, owner_id: null })
    .execute()
  return path
}

describe('accord doctor', () => {
  it('needs no write lock: it says the same while another process holds it', async () => {
    const other = new Sqlite(inData('accord.db'))
    try {
      other.exec('begin immediate')
      expect(await findings()).toEqual([])
    } finally {
      other.close()
    }
  })

  it('finds nothing in an installation where nothing is wrong', async () => {
    await fileOf('whole')
    expect(await findings()).toEqual([])
    expect((await doctor()).stdout).toMatch(/Everything is in order\.\n$/)
    expect(await findings({}, { deep: true })).toEqual([])
  })

  it('ends with 0 for hints', async () => {
    const { stdout, code } = await doctor()
    expect(code).toBe(0)
    expect(stdout).toContain('hint    Backups: there is none. Run accord backup every day; its --help shows how.\n')
  })
})

describe('Node', () => {
  it('must be 20.19 or newer', () => {
    expect(['20.19.0', '22.23.3', '24.21.0'].map((version) => checkNodeVersion(version))).toEqual([null, null, null])
    for (const version of ['18.20.0', '20.18.3']) expect(checkNodeVersion(version)).toContain('Install Node 24')
  })
})

describe('the disk', () => {
  it('that has little room left is a hint, and one that has next to none is broken', () => {
    expect(checkFreeSpace(place.config, () => 5e9)).toBeNull()
    expect(checkFreeSpace(place.config, () => 5e8)).toEqual(
      new Hint(`500 MB are free for ${place.dataDir}. Free some space soon.`),
    )
    expect(checkFreeSpace(place.config, () => 1e7)).toMatch(/^10 MB are free for \S+\. Free some space: /)
  })

  it('is that of the database too, which may be another one', () => {
    const elsewhere = join(place.dataDir, '..', 'elsewhere')
    mkdirSync(elsewhere)
    const config = { ...place.config, databaseUrl: `sqlite:${join(elsewhere, 'accord.db')}` }
    expect(checkFreeSpace(config, (folder) => (folder === elsewhere ? 1e7 : 5e9))).toContain(
      `10 MB are free for ${elsewhere}.`,
    )
    rmSync(elsewhere, { recursive: true })
  })

  it('tells of a log beside the database that has become huge', async () => {
    await db().updateTable('event_readers').set({ last_event_id: 0 }).execute()
    truncateSync(inData('accord.db-wal'), 300e6)
    expect(await findings()).toEqual([
      expect.stringMatching(/^hint {4}Write-ahead log: the log beside the database has 300 MB\./),
    ])
    truncateSync(inData('accord.db-wal'), 0)
  })
})

describe('rights', () => {
  it('of the data folder and of the database that every user can open', async () => {
    chmodSync(place.dataDir, 0o755)
    chmodSync(inData('accord.db'), 0o644)
    expect(await findings()).toEqual([
      `BROKEN  Data folder ${place.dataDir}: every user of this machine can open it. Run: chmod 700 ${place.dataDir}`,
      `BROKEN  Database permissions: every user of this machine can read ${inData('accord.db')}. Run: chmod 600 ${inData('accord.db')}`,
    ])
  })

  it('of the secret that others can read', async () => {
    chmodSync(inData('secret'), 0o640)
    expect(await findings()).toEqual([
      expect.stringMatching(/^BROKEN {2}Secret: other users can read \S+\. Run: chmod 600/),
    ])
  })
})

describe('the secret', () => {
  it('that does not open what was stored', async () => {
    const at = { created_at: ago(0), updated_at: ago(0) }
    const value = JSON.stringify(createEncryption(testSecret).encrypt('of the mailbox'))
    await db()
      .insertInto('core_config')
      .values({ code: 'email.imap.account.password', value, ...at })
      .execute()
    expect(await findings()).toEqual([])
    const wrong = await findings({ secret: 'w'.repeat(32) })
    expect(wrong).toEqual([
      'BROKEN  Encrypted values: the secret does not decrypt 1 of 1 (the configuration email.imap.account.password). Set ACCORD_SECRET to the secret they were encrypted with, or enter the values again.',
    ])
  })

  it('that is gone', async () => {
    rmSync(inData('secret'))
    expect(await findings()).toEqual([
      'BROKEN  Secret: ACCORD_SECRET is not set and the data folder has none. Run: accord install',
    ])
  })
})

describe('the bytes of files', () => {
  it('that are missing, cut off or changed', async () => {
    const [gone, short, changed] = [await fileOf('gone'), await fileOf('short'), await fileOf('changed')]
    rmSync(gone)
    truncateSync(short, 2)
    writeFileSync(changed, 'CHANGED')
    expect(await findings()).toEqual([
      'BROKEN  Files: the contents of file 3 were changed, file 2 has 2 bytes instead of 5, file 1 is missing. Copy them from a backup: files/<first two of the hash>/<hash>.',
    ])
  })

  it('that are old are read with --deep alone', async () => {
    const oldest = await fileOf('oldest')
    for (let count = 0; count < 50; count++) await fileOf(randomUUID())
    writeFileSync(oldest, 'OLDEST')
    expect(await findings()).toEqual([])
    expect(await findings({}, { deep: true })).toEqual([
      expect.stringMatching(/^BROKEN {2}Files: the contents of file 1 were changed\. Copy it from a backup/),
    ])
  })
})

describe('what happens by itself', () => {
  const job = { kind: 'emails.send', payload: '{}', run_at: ago(60), created_at: ago(60), updated_at: ago(60) }
  const event = { name: 'lead.create.after', entity_type: 'leads', entity_id: 1, actor_type: 'system', origin: 'api' }

  it('tokens that use a deprecated part of the contract, the earliest sunset first, as hints', async () => {
    const now = ago(0)
    const token = { name: 'Shop', kind: 'personal', secret_hash: 'x', created_at: now, updated_at: now } as const
    await db()
      .insertInto('tokens')
      .values({ ...token, user_id: 1 })
      .execute()
    const { id } = await db().selectFrom('tokens').select('id').where('name', '=', 'Shop').executeTakeFirstOrThrow()
    const use = { token_id: id, last_used_at: '2026-11-20T09:00:00.000Z' }
    await db()
      .insertInto('deprecated_uses')
      .values([
        { ...use, name: 'listLeads ?amount', sunset: '2027-12-01' },
        { ...use, name: 'Lead.amount', sunset: '2027-02-01' },
      ])
      .execute()
    expect(await findings()).toEqual(
      [
        ['Lead.amount', '2027-02-01'],
        ['listLeads ?amount', '2027-12-01'],
      ].map(([part, sunset]) =>
        expect.stringContaining(
          `token ${id} (Shop) used ${part} on 2026-11-20, which is promised until ${sunset}. See: GET /api/admin/tokens/${id}`,
        ),
      ),
    )
  })

  it('jobs that were given up', async () => {
    await db()
      .insertInto('jobs')
      .values({ ...job, state: 'buried' })
      .execute()
    expect(await findings()).toEqual([
      expect.stringMatching(/^BROKEN {2}Jobs: 1 failed for good\. See: accord jobs list --state buried/),
    ])
  })

  it('webhooks that fail or were switched off, with how many deliveries wait, as a hint; jobs list says the same', async () => {
    const webhook = {
      url: 'https://hooks.example/x',
      secret_sealed: '',
      changed_by_id: 1,
      created_at: ago(60),
      updated_at: ago(60),
    }
    const since = ago(30)
    await db()
      .insertInto('webhooks')
      .values([
        { ...webhook, name: 'Billing', name_key: 'billing', is_active: 1, failing_since: since, last_status: 500 },
        { ...webhook, name: 'Gone', name_key: 'gone', is_active: 0, disabled_reason: 'The receiver answered 410.' },
        { ...webhook, name: 'Off', name_key: 'off', is_active: 0, disabled_reason: null },
        { ...webhook, name: 'Slow', name_key: 'slow', is_active: 1 },
        { ...webhook, name: 'Mute', name_key: 'mute', is_active: 1, changed_by_id: null },
      ])
      .execute()
    const delivery = { event: 'lead.create.after', entity_type: 'leads', created_at: ago(60), updated_at: ago(60) }
    const pending = (webhook_id: number, n: number) => ({
      ...delivery,
      webhook_id,
      state: 'pending' as const,
      dedupe_key: `${n}`,
      message_id: `${n}`,
    })
    await db()
      .insertInto('webhook_deliveries')
      .values([pending(1, 1), pending(1, 2), { ...pending(1, 3), state: 'failed' as const }, pending(4, 4)])
      .execute()
    const billing = `ebhook 1 "Billing" fails since ${since}; the receiver answered 500; 2 deliveries wait`
    const gone = 'ebhook 2 "Gone" switched off by the server: The receiver answered 410; no deliveries wait'
    const mute =
      'ebhook 5 "Mute" sends nothing: The user who changed this webhook last is deleted or inactive. Save a change to it so that it acts with your rights; no deliveries wait'
    expect(await findings()).toEqual([
      `hint    Webhooks: w${billing}, w${gone}, w${mute}. The list of deliveries says why: GET /settings/webhooks/{id}/deliveries`,
    ])
    expect((await said(() => listJobsCommand(place.config, {}))).stdout).toBe(
      `There are no jobs.\nW${billing}.\nW${gone}.\nWebhook 4 "Slow"; 1 delivery waits.\nW${mute}.\n`,
    )
    expect((await said(() => listJobsCommand(place.config, { state: 'buried' }))).stdout).toBe('There are no jobs.\n')
  })

  it('jobs of a worker that is gone are cut off, and broken when another worker leaves them so', async () => {
    await db()
      .insertInto('jobs')
      .values({ ...job, state: 'running', locked_by: 'x', locked_until: ago(30) })
      .execute()
    expect(await findings()).toEqual([
      'hint    Interrupted jobs: 1 jobs were interrupted and will continue when a server or worker starts.',
    ])
    await atWork()
    expect(await findings()).toEqual([
      expect.stringMatching(/^BROKEN {2}Interrupted jobs: 1 jobs have run past their lease\./),
    ])
  })

  it('consumers that do not reach old events, unless no process works', async () => {
    await db()
      .insertInto('events')
      .values({ ...event, created_at: ago(30) })
      .execute()
    expect(await findings()).toEqual([
      expect.stringMatching(
        /^hint {4}Event consumers: .*webhooks \(at event \d+\).* will continue when a server or worker starts\.$/,
      ),
    ])
    await atWork()
    expect(await findings()).toEqual([
      expect.stringMatching(/^BROKEN {2}Event consumers: .* did not read events from more than 10 minutes ago\./),
    ])
    // Simulates a recent stop: the lock row of the ended process is still valid for some seconds.
    await db()
      .updateTable('locks')
      .set({ locked_by: nameOf({ ...self, pid: 4_194_303, began: '' }, 'x') })
      .execute()
    expect(await findings()).toEqual([
      expect.stringMatching(/^hint {4}Event consumers: .* will continue when a server/),
    ])
    await db().updateTable('event_readers').set({ last_event_id: 1_000_000 }).execute()
    expect(await findings()).toEqual([])
  })

  it('a clock that was set back behind the newest event', async () => {
    await db()
      .insertInto('events')
      .values({ ...event, created_at: ago(-600) })
      .execute()
    expect(await findings()).toEqual([
      expect.stringMatching(
        /^BROKEN {2}Clock: the newest event is from \S+, but the clock of this machine says \S+\. Set the clock/,
      ),
    ])
  })
})

describe('the rows', () => {
  it('that refer to deleted records', async () => {
    await sql`pragma foreign_keys = off`.execute(db())
    await sql`insert into user_groups (user_id, group_id) values (9, 9)`.execute(db())
    expect(await findings()).toEqual([
      expect.stringMatching(
        /^BROKEN {2}Database .* refers to a row of \w+ that is gone\..* Stop the server\. Restore a backup: accord restore <path> --force$/,
      ),
    ])
  })

  it('a database that is none any more', async () => {
    await place.stop()
    writeFileSync(inData('accord.db'), 'not a database, but long enough to look like the beginning of one'.repeat(20))
    expect(await findings()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^BROKEN {2}Database \S+: it cannot be opened \(.*\)\. Check the path .* accord restore <path> --force$/,
        ),
      ]),
    )
  })

  it('pages of the database that make no sense', async () => {
    const { rows } = await sql<{
      rootpage: number
    }>`select rootpage from sqlite_master where name = 'user_groups'`.execute(db())
    const from = 4096 * ((rows[0]?.rootpage ?? 0) - 1)
    await place.stop()
    // Damages only one table, so that the database can be opened.
    const bytes = readFileSync(inData('accord.db'))
    bytes.fill(0xff, from, from + 4096)
    writeFileSync(inData('accord.db'), bytes)
    expect(await findings()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^BROKEN {2}Database \S+: .*malformed.* Stop the server\. Restore a backup: accord restore <path> --force$/,
        ),
      ]),
    )
  })

  it.each([
    ['gone', () => rmSync(inData('accord.db'))],
    ['empty', () => truncateSync(inData('accord.db'), 0)],
  ])(
    'a database that is %s while what belongs to it is there is to be restored, not installed',
    async (_what, lose) => {
      await fileOf('kept')
      await place.stop()
      lose()
      const lines = await findings()
      expect(lines).toContain(
        `BROKEN  Database ${place.config.databaseUrl}: it is gone or empty, but files/, secret and openapi.json of an installation exist. Stop the server. Restore a backup: accord restore <path> --force`,
      )
      expect(lines.join()).not.toMatch(/accord (install|migrate)/)
      rmSync(inData('files'), { recursive: true })
      for (const name of ['secret', 'openapi.json']) rmSync(inData(name))
      expect((await findings()).join()).toContain('it does not exist. Run it in the folder of the installation')
    },
  )

  it('a database that was begun anew where there was one', async () => {
    await place.stop()
    rmSync(inData('accord.db'))
    await openStore(place.config.databaseUrl).close()
    const lines = (await findings()).filter((line) => line.includes('Migrations'))
    expect(lines).toEqual([
      'BROKEN  Migrations: it is gone or empty, but secret and openapi.json of an installation exist. Stop the server. Restore a backup: accord restore <path> --force',
    ])
  })

  it('no administrator that can sign in', async () => {
    await db().updateTable('users').set({ is_active: 0 }).execute()
    expect(await findings()).toEqual([
      expect.stringMatching(/^BROKEN {2}Administrator: no active user holds every permission\./),
    ])
  })

  it('the address of the example for an administrator in production', async () => {
    const production = { env: 'production' as const, appUrl: 'https://crm.example.com', trustedProxies: ['127.0.0.1'] }
    expect(await findings({ ...production, adminPassword: null })).toEqual([
      'hint    Administrator: admin@example.com still holds every permission. Give it a real address.',
    ])
  })

  it('migrations that are to be applied', async () => {
    const last = migrations.at(-1)?.name ?? ''
    await db().deleteFrom('migrations').where('name', '=', last).execute()
    expect(await findings()).toEqual([`BROKEN  Migrations: 1 pending (${last}). Run: accord migrate`])
  })
})

describe('backups', () => {
  it('are recommended when the last one is older than a week, wherever it is', async () => {
    await backUp(place.config, inData('..', 'elsewhere'), true)
    expect((await doctor()).stdout).toContain('ok      Backups\n')
    const note = readFileSync(inData('last-backup'), 'utf8')
    writeFileSync(inData('last-backup'), note.replace('elsewhere', 'unmounted'))
    expect(await findings()).toEqual([
      expect.stringMatching(/^hint {4}Backups: the last one was made at \S+, and it is no longer at \S+\. Run accord/),
    ])
    writeFileSync(inData('last-backup'), note.replace(/^\S+/, ago(8 * 24 * 60)))
    expect(await findings()).toEqual([
      expect.stringMatching(/^hint {4}Backups: the last one was made at \S+\. Run accord backup every day/),
    ])
  })

  it('leave nothing forgotten: half ones, uploads that were cut off, data put aside, a restore that did not end', async () => {
    const old = new Date(Date.now() - 2 * 24 * 60 * 60_000)
    for (const name of ['backups/.2026-01-01T00-00-00-000Z.partial', 'files/tmp/x', '.openapi.json.1.new']) {
      mkdirSync(dirname(inData(name)), { recursive: true })
      writeFileSync(inData(name), '')
      utimesSync(inData(name), old, old)
    }
    writeFileSync(inData('files/tmp/young'), '')
    mkdirSync(inData('before-restore-2026-01-01'))
    writeFileSync(inData('restoring'), 'x')
    expect(await findings()).toEqual([
      'BROKEN  Leftovers: a restore was interrupted. Run it again: accord restore <backup> --force',
      expect.stringMatching(/^hint {4}Leftovers: 3 unfinished files are older than a day \(.*\)\. Delete them\.$/),
      expect.stringMatching(/^hint {4}Leftovers: before-restore-2026-01-01 holds the data from before a restore\./),
    ])
  })
})

describe('a database elsewhere', () => {
  it('has what restores and migrations have left beside it', async () => {
    const old = new Date(Date.now() - 2 * 24 * 60 * 60_000)
    const elsewhere = inData('..', 'elsewhere')
    mkdirSync(join(elsewhere, 'backups'), { recursive: true })
    await place.stop()
    renameSync(inData('accord.db'), join(elsewhere, 'accord.db'))
    for (const name of [
      '.restore-2026.db.partial',
      'backups/accord-2026.db.partial',
      '.theirs.partial',
      'a.db.partial',
    ]) {
      writeFileSync(join(elsewhere, name), '')
      utimesSync(join(elsewhere, name), old, old)
    }
    mkdirSync(join(elsewhere, 'before-restore-2026'))
    expect(await findings({ databaseUrl: `sqlite:${join(elsewhere, 'accord.db')}` })).toEqual([
      `hint    Leftovers: 2 unfinished files are older than a day (${join(elsewhere, '.restore-2026.db.partial')} …). Delete them.`,
      `hint    Leftovers: ${join(elsewhere, 'before-restore-2026')} holds the data from before a restore. Delete it when you no longer need it.`,
    ])
  })
})

describe('the mailbox', () => {
  const imap = useOne(startImap)

  it('that lets us in, and the one that does not', async () => {
    imap.deliver('INBOX', 'Subject: Hello\r\n\r\nHello')
    const { host, port, username, password } = imap
    const account = { host, port, username, password, encryption: 'none', validateCert: false } as const
    const config: Partial<Config> = { mailReceiver: 'webklex-imap', imap: account }
    await place.stop()
    expect(await findings(config)).toEqual([])
    expect(imap.commands.filter((each) => /fetch|store/i.test(each))).toEqual([])
    expect(await findings({ ...config, imap: { ...account, password: 'wrong' } })).toEqual([
      expect.stringMatching(/^BROKEN {2}Mailbox: .* See ACCORD_IMAP_HOST and the configuration/),
    ])
    expect(await findings({ ...config, imap: { ...account, host: null } })).toEqual([
      'BROKEN  Mailbox: No mailbox is set: host, user name and password are needed. See ACCORD_IMAP_HOST and the configuration email.imap.account.',
    ])
  })
})
