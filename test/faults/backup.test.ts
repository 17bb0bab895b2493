// Another process backs up a database while a server writes. The restored copy contains every write
// that was acknowledged before the backup began, no partial writes, and the same users, tokens and
// secrets. ACCORD_TEST_FULL=1 makes five backups.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { presentSecret } from '../../src/installation/data-folder.ts'
import { checkEncryptedValues } from '../../src/installation/encrypted-values.ts'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { workingFolder } from '../support/installed.ts'
import { audit, nothing, shownOtherwise } from './audit.ts'
import { seeded } from './chance.ts'
import { call, type Door, type Lead, type Load, prepare } from './load.ts'
import { environment, isFull } from './serving.ts'

const rounds = isFull ? 5 : 1
const writers = 4
const seed = 20_261_122
/** The number of acknowledged writes before each backup. */
const answersBefore = isFull ? 300 : 40
const fileBytes = 32 * 1024

let folder: string
let servers: Serving[] = []
beforeEach(async () => {
  folder = await workingFolder()
  servers = []
})
afterEach(async () => {
  for (const each of servers) await each.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(changes: Record<string, string> = {}): Promise<Serving> {
  const serving = await accordServing(folder, 'serve', { ...environment, ...changes })
  servers.push(serving)
  return serving
}

/**
 * Creates and immediately deletes files, which is the hardest case for a backup. Records the
 * slowest reply.
 */
function comeAndGo(door: Door) {
  let [isOn, slowestMs, count] = [true, 0, 0]
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const since = performance.now()
    const answer = await work()
    slowestMs = Math.max(slowestMs, performance.now() - since)
    return answer
  }
  const done = (async () => {
    while (isOn) {
      const { body, headers } = await form({ file: file('gone.txt', `${count++} comes and goes`.repeat(500)) })
      const { data } = (await timed(() => call(door, 'POST', '/files', { body, headers }))).body
      await timed(() => call(door, 'GET', '/leads?per_page=10'))
      await timed(() => call(door, 'DELETE', `/files/${data.id}`))
    }
  })()
  const slowest = (): number => {
    const found = slowestMs
    slowestMs = 0
    return Math.round(found)
  }
  const stop = async (): Promise<number> => {
    isOn = false
    await done
    return count
  }
  return { slowest, stop }
}

const remembered = ({ leads, files, pending }: Load) => ({
  leads: new Map(leads.map((lead) => [lead.id, { ...lead }])),
  files: [...files],
  busy: new Set([...pending].flatMap((what) => ('lead' in what ? [what.lead.id] : []))),
})

/**
 * Splits the records: those unchanged during the backup must be equal, and changed records must not
 * be older.
 */
function expected(before: ReturnType<typeof remembered>, load: Load): { same: Lead[]; moved: Lead[] } {
  const after = remembered(load)
  const known = [...before.leads.values()]
  const isSame = ({ id, version, isDeleted }: Lead): boolean => {
    const now = after.leads.get(id)
    return now?.version === version && now.isDeleted === isDeleted && (isDeleted || !after.busy.has(id))
  }
  return { same: known.filter(isSame), moved: known.filter((lead) => !isSame(lead)) }
}

async function olderThan(dataDir: string, moved: readonly Lead[]): Promise<string[]> {
  const store = openStore(`sqlite:${join(dataDir, 'accord.db')}`)
  const rows = await store.db.selectFrom('leads').select(['id', 'version']).execute()
  const gone = await store.db.selectFrom('events').select('entity_id').where('name', '=', 'lead.delete.after').execute()
  await store.close()
  const [versions, deleted] = [
    new Map(rows.map(({ id, version }) => [id, version])),
    new Set(gone.map((row) => row.entity_id)),
  ]
  return moved
    .filter(({ id, version }) => !deleted.has(id) && (versions.get(id) ?? 0) < version)
    .map(
      ({ id, version }) => `Lead ${id} was acknowledged with version ${version} and is ${versions.get(id) ?? 'gone'}.`,
    )
}

describe('a backup that is taken while a server writes', () => {
  it(
    'restores to everything acknowledged before it began, whole, with the same people, programs and secrets',
    async () => {
      const { url } = await serve()
      const { door, load } = await prepare(url, environment.ACCORD_ADMIN_PASSWORD)
      const webhook = { name: 'Warehouse', url: 'https://example.com/', events: ['quote.create.after'] }
      expect((await call(door, 'POST', '/settings/webhooks', { body: webhook })).status).toBe(201)
      const random = seeded(seed)
      // Some writers stop before the first backup, so that their writes can be compared exactly.
      const early = load.write(door, 2 * writers, random, fileBytes)
      await expect.poll(() => load.acknowledged >= answersBefore, { interval: 5, timeout: 600_000 }).toBe(true)
      early.stop()
      await early.done
      const writing = load.write(door, writers, random, fileBytes)
      const churn = comeAndGo(door)
      let restored = ''

      for (let round = 1; round <= rounds; round++) {
        const acknowledged = load.acknowledged
        await expect
          .poll(() => load.acknowledged - acknowledged >= answersBefore, { interval: 5, timeout: 600_000 })
          .toBe(true)
        const slowestBefore = churn.slowest()
        const before = remembered(load)
        const since = load.acknowledged
        const backup = await accord(folder, ['backup'], environment)
        const [slowestDuring, meanwhile] = [churn.slowest(), load.acknowledged - since]
        expect(backup).toMatchObject({ code: 0, stderr: '' })
        const { same, moved } = expected(before, load)
        const path = /^Backed up to (.*)$/m.exec(backup.stdout)?.[1] ?? ''

        restored = join(folder, `restored-${round}`)
        const restore = await accord(folder, ['restore', path], { ...environment, ACCORD_DATA_DIR: restored })
        expect(restore).toMatchObject({ code: 0, stderr: '' })
        const about = `round ${round} of seed ${seed}`
        const found = await audit(restored, { ...load, leads: same, files: before.files, refused: new Set() })
        expect(found, about).toEqual(nothing)
        expect(await olderThan(restored, moved), about).toEqual([])
        expect(meanwhile, 'the server wrote while it was backed up').toBeGreaterThan(0)
        const figures = /^(\d+ rows .*)$/m.exec(backup.stdout)?.[1]
        console.log(
          `backup ${round} of ${rounds}: ${figures} Acknowledged before ${since}, of them leads compared ${same.length} exactly and ${moved.length} by version, ` +
            `files ${before.files.length}; written meanwhile ${meanwhile}; slowest request before ${slowestBefore} ms, meanwhile ${slowestDuring} ms`,
        )
      }
      writing.stop()
      await writing.done
      expect(load.strange).toEqual([])
      expect(await churn.stop()).toBeGreaterThan(1)

      const again = { url: (await serve({ ACCORD_DATA_DIR: restored })).url, token: door.token }
      // The old token and the old password still work.
      expect((await call(again, 'GET', '/leads?per_page=1')).status).toBe(200)
      const account = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'again' }
      expect((await call({ ...again, token: '' }, 'POST', '/login', { body: account })).status).toBe(200)
      const [kept] = load.files
      expect((await call(again, 'GET', `/files/${kept?.id}/download`)).status).toBe(200)
      const store = openStore(`sqlite:${join(restored, 'accord.db')}`)
      const leads = await store.db.selectFrom('leads').select('id').execute()
      const config = testConfig({ dataDir: restored })
      expect(await checkEncryptedValues(store.db, config, presentSecret(config))).toEqual({ values: 1, unreadable: [] })
      await store.close()
      const shown = leads.slice(-200).map(({ id }) => ({ id, title: '', value: 0, version: 0, isDeleted: false }))
      expect(await shownOtherwise(again, restored, shown)).toEqual([])
    },
    isFull ? 1_800_000 : 180_000,
  )
})
