// npm run test:power [-- --answers 1000 --seed 1] simulates a hundred power cuts during writes.
// strace (apt-get install strace) records the writes, syncs and replies of a server. After each
// cut, the database must be intact and contain every acknowledged record. Exits with 1 otherwise.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'
import { accordServing } from '../support/accord.ts'
import { seeded } from './chance.ts'
import { Disk } from './power.disk.ts'
import { bytesIn, type Call, eachCall, lastNumber } from './power.log.ts'

const { values: asked } = parseArgs({
  options: { answers: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
})
const random = seeded(Number(asked.seed))
/** The server is killed after this many records. */
const fewest = Number(asked.answers)
const writers = 12
/** The number of simulated power cuts. */
const cuts = 100
/** The shares of unsynced data that a cut leaves. */
const shares = [0, 0.5, 0.9, 1]
const password = 'a password for power cuts'

const folder = mkdtempSync(join(tmpdir(), 'accord-power-'))
const trace = join(folder, 'strace.log')
const calls = 'pwrite64,write,writev,sendmsg,fsync,fdatasync,ftruncate,unlink,unlinkat'
const under = ['strace', '-D', '-f', '-y', '-xx', '-s', '200000', '-e', `trace=${calls}`, '-o', trace]

/**
 * Creates leads on each connection one after another, and kills the server after enough replies.
 * Returns the number of replies.
 */
async function load(url: string, kill: () => void): Promise<number> {
  // Compressed replies could not be read in the output of strace.
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'identity' }
  const post = (path: string, body: object, more = {}) =>
    fetch(`${url}/api/admin${path}`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
  const account = { email: 'admin@example.com', password, device_name: 'power' }
  const { data } = (await (await post('/login', account)).json()) as { data: { token: string } }
  let sent = 0
  let answered = 0
  const write = async (): Promise<void> => {
    for (;;) {
      const description = `${random()} `.repeat(1 + Math.floor(random() * 400))
      const lead = { title: `[mark ${sent++}]`, lead_value: 1, lead_source_id: 1, lead_type_id: 1, description }
      const answer = await post('/leads', lead, { authorization: `Bearer ${data.token}` })
      if (answer.status !== 201) throw new Error(`${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
      if (++answered === fewest) kill()
    }
  }
  await Promise.all(Array.from({ length: writers }, () => write().catch(() => undefined)))
  return answered
}

interface Cut {
  acknowledged: ReadonlySet<string>
  database: Buffer
  log: Buffer
}

/** Returns the problem of the state after a cut as a sentence, or null. */
function wrongWith({ acknowledged, database, log }: Cut): string | null {
  const file = join(folder, 'cut.db')
  rmSync(`${file}-shm`, { force: true })
  writeFileSync(file, database)
  writeFileSync(`${file}-wal`, log)
  const found = new Sqlite(file)
  try {
    withFunctions(found)
    const integrity = found.pragma('integrity_check', { simple: true })
    if (integrity !== 'ok') return `integrity_check: ${integrity}`
    const titles = new Set(found.prepare<[], string>('select title from leads').pluck().all())
    const lost = [...acknowledged].filter((each) => !titles.has(each))
    return lost.length === 0 ? null : `${lost.length} of ${acknowledged.size} are lost, such as ${lost[0]}`
  } catch (error) {
    return String(error)
  } finally {
    found.close()
  }
}

const wrong: string[] = []
const counts = { acknowledged: 0, cuts: 0, images: 0, checkpoints: 0, restarts: 0 }

async function replay(answers: number): Promise<void> {
  const disk = new Disk()
  const acknowledged = new Set<string>()
  /** The last synced file by thread. */
  const lastSynced = new Map<string, string>()
  const isSync = (name: string): boolean => name === 'fsync' || name === 'fdatasync'
  const isDatabase = (path: string): boolean => /accord\.db(-wal)?$/.test(path)
  const nameOf = (path: string): string => (path.endsWith('-wal') ? 'log' : 'database')

  function begun({ thread, name, path, text }: Call): void {
    if (isSync(name) && isDatabase(path)) disk.syncBegins(thread, nameOf(path))
    if (/^(write|writev|sendmsg)$/.test(name) && path.startsWith('socket:')) answersIn(bytesIn(text).toString())
  }

  function answersIn(sent: string): void {
    if (!sent.startsWith('HTTP/1.1 201')) return
    for (const [mark] of sent.matchAll(/\[mark \d+\]/g)) acknowledged.add(mark)
    if (acknowledged.size > 0 && random() < cuts / answers) cut()
  }

  function cut(): void {
    counts.cuts++
    for (const share of shares) {
      counts.images++
      const [database, log] = ['database', 'log'].map((name) => disk.after(name, share, random)) as [Buffer, Buffer]
      const found = wrongWith({ acknowledged, database, log })
      if (found !== null)
        wrong.push(`After ${acknowledged.size} answers, with ${share} of the unsynced sectors: ${found}`)
    }
  }

  function ended({ thread, name, path, text, result = -1 }: Call): void {
    if (!isDatabase(path) || result < 0) return
    const file = nameOf(path)
    if (isSync(name)) {
      disk.syncEnds(thread)
      lastSynced.set(thread, file)
    }
    if (name.startsWith('unlink')) disk.remove(file)
    if (name === 'ftruncate') disk.change(file, { length: lastNumber(text) })
    if (name === 'pwrite64') wrote(thread, file, { at: lastNumber(text), bytes: bytesIn(text) })
  }

  function wrote(thread: string, file: string, change: { at: number; bytes: Buffer }): void {
    const isSynced = disk.isSynced('database')
    if (file === 'database' && isSynced) counts.checkpoints++
    if (file === 'log' && change.at === 0) counts.restarts++
    // The rules apply only after the first reply, because the creation of the database does not use
    // the log.
    if (acknowledged.size > 0) {
      if (file === 'database' && lastSynced.get(thread) !== 'log')
        wrong.push('A checkpoint began before it had synced the log.')
      if (file === 'log' && change.at === 0 && !isSynced)
        wrong.push('The log began again before the database was synced.')
    }
    disk.change(file, change)
  }

  await eachCall(trace, { begun, ended })
  counts.acknowledged = acknowledged.size
}

try {
  const settings = { ACCORD_ADMIN_PASSWORD: password, ACCORD_LOG_LEVEL: 'error', UV_USE_IO_URING: '0' }
  const server = await accordServing(folder, 'start', settings, { under })
  const answers = await load(server.url, () => void server.stop('SIGKILL'))
  await server.stop('SIGKILL')
  // strace writes the rest of its output later.
  await pause(1000)
  await replay(answers)
  process.stdout.write(`${JSON.stringify({ ...counts, answers })}\n`)
  if (answers < fewest) wrong.push(`It answered ${answers} only.`)
  if (counts.acknowledged < answers)
    wrong.push(`Only ${counts.acknowledged} of ${answers} answers are in what strace wrote.`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const each of wrong.slice(0, 20)) process.stdout.write(`✗ ${each}\n`)
if (wrong.length === 0) process.stdout.write('✓ Every database was whole, and had every record that was answered.\n')
process.exitCode = wrong.length === 0 ? 0 : 1
