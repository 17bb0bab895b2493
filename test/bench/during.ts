// Measures the wait of a reader of single leads while the server is idle, exports all leads,
// validates and imports a file, does both, prints quotes and draws charts, or deletes an attribute
// that all leads have. `npx tsx test/bench/during.ts` measures the built program in a copy of the
// folder of fill.ts.
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { during } from './during.ask.ts'
import { drawFor, prepareDrawing } from './during.draw.ts'
import { fill, keptFolder } from './fill.ts'

const built = fileURLToPath(new URL('../../dist/src/cli.js', import.meta.url))
const imports = '/settings/data-transfer/imports'

interface Server {
  url: string
  process: ChildProcess
  /** Returns the CPU time so far in seconds. */
  cpu(): number
}

/** Starts the program with production settings, without rate limits. */
async function serve(program: string, folder: string): Promise<Server> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('ACCORD_'))
  const settings = { ACCORD_ENV: 'production', ACCORD_PORT: '0', ACCORD_RATE_LIMIT: 'off' }
  const child = spawn(process.execPath, [program, 'serve'], {
    cwd: folder,
    env: { ...Object.fromEntries(own), ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((found, failed) => {
    let said = ''
    child.once('close', (code) => failed(new Error(`The server ended with ${code}: ${said}`)))
    child.stdout.on('data', (bytes: Buffer) => {
      if (said.length < 10_000) said += bytes
      const address = /listens on (http:[^\s"]+)/.exec(said)?.[1]
      if (address !== undefined) found(address)
    })
  })
  const cpu = (): number => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / 100
  }
  return { url, process: child, cpu }
}

interface Import {
  id: number
  state: string
  processed_rows_count: number
  errors_count: number
  errors: unknown
}

function client(url: string, token: string) {
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  async function api<T>(method: string, path: string, body?: object): Promise<T> {
    const isForm = body instanceof FormData
    const answer = await fetch(`${url}/api/admin${path}`, {
      method,
      headers: { ...headers, ...(body && !isForm && { 'content-type': 'application/json' }) },
      ...(body && { body: isForm ? body : JSON.stringify(body) }),
    })
    const reply = (await answer.json()) as { data: T }
    if (answer.status === 503) return sleep(1000).then(() => api<T>(method, path, body))
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(reply)}`)
    return reply.data
  }
  const at = (id: number): Promise<Import> => api('GET', `${imports}/${id}`)

  return {
    at,
    begin: (id: number, what: 'validate' | 'start') => api('POST', `${imports}/${id}/${what}`),
    /** Reads all leads as CSV and returns the number of lines. */
    exportAll: (): Promise<number> =>
      new Promise((found, failed) => {
        request(`${url}/api/admin/leads/export?format=csv`, { headers: { authorization: headers.authorization } })
          .on('error', failed)
          .on('response', (reply) => {
            let lines = 0
            reply
              .on('error', failed)
              .on('data', (bytes: Buffer) => {
                for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
              })
              .on('end', () =>
                reply.statusCode === 200
                  ? found(lines - 1)
                  : failed(new Error(`The export answered ${reply.statusCode}.`)),
              )
          })
          .end()
      }),
    /** Uploads a file of leads and creates an import that has not started. */
    async newImport(rows: number): Promise<number> {
      const lines = Array.from({ length: rows }, (_, index) =>
        [
          `Imported ${index}`,
          index % 5000,
          `person${1 + (index % 1000)}@example.com`,
          `"From a file, row ${index}"`,
          `New ${index % 20}`,
        ].join(),
      )
      const sent = new FormData()
      const table = ['title,lead_value,person_email,description,tags', ...lines].join('\n')
      sent.set('file', new Blob([table], { type: 'text/csv' }), 'leads.csv')
      const file = await api<{ id: number }>('POST', '/files', sent)
      const plan = { type: 'leads', action: 'append', validation_strategy: 'skip-errors', process_in_queue: true }
      return (await api<Import>('POST', imports, { ...plan, file_id: file.id })).id
    },
    async deleteAttribute(code: string): Promise<void> {
      const [found] = await api<{ id: number }[]>('GET', `/settings/attributes?entity_type=leads&code=${code}`)
      await api('DELETE', `/settings/attributes/${found?.id}`)
    },
    async until(id: number, isDone: (import_: Import) => boolean): Promise<Import> {
      for (;;) {
        const import_ = await at(id)
        if (isDone(import_)) return import_
        await sleep(200)
      }
    },
  }
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

interface Wanted {
  leads: number
  rows: number
  aSecond: number
  seconds: number
  only: string | undefined
}

async function run(server: Server, token: string, { leads, rows, aSecond, seconds, only }: Wanted): Promise<void> {
  const { at, begin, deleteAttribute, exportAll, newImport, until } = client(server.url, token)
  const task = { url: server.url, token, leads, aSecond }

  /** `work` returns the number of rows it processed. */
  async function measured(what: string, work: () => Promise<number>): Promise<void> {
    let [took, cost] = [0, 0]
    const { figures, done } = await during(task, async () => {
      const [since, used] = [performance.now(), server.cpu()]
      const done = await work()
      took = (performance.now() - since) / 1000
      cost = server.cpu() - used
      return done
    })
    const { count, notOk, p50, p99, max } = figures
    const times = [p50, p99, max].map((ms) => ms.toFixed(2).padStart(9)).join('')
    const work_ = `${Math.round(done / took)} rows/s, ${done === 0 ? '' : ((cost * 1000) / done).toFixed(2)} ms of CPU each`
    console.log(
      `${what.padEnd(24)}${times}${(p99 / p50).toFixed(1).padStart(9)}   ${count} shows, ${notOk} refused; ${work_}, ${cost.toFixed(1)} of ${took.toFixed(1)} s`,
    )
  }

  /** Runs the import for some seconds, or until it ends. */
  async function progress(id: number, name: string): Promise<number> {
    const begun = await until(id, ({ state, processed_rows_count: done }) => state !== name || done > 0)
    const over = performance.now() + seconds * 1000
    const last = await until(id, ({ state }) => state !== name || performance.now() > over)
    return last.processed_rows_count - begun.processed_rows_count
  }

  await during(task, () => sleep(5000))
  console.log(`${'show while'.padEnd(24)}   p50 ms   p99 ms   max ms  p99/p50`)
  await measured('idle', () => sleep(seconds * 1000).then(() => 0))
  const drawing = await prepareDrawing(server.url, token)
  await measured('drawing', () => drawFor(server.url, drawing, seconds))
  if (only === 'drawing') return
  await measured('export', exportAll)
  const id = await newImport(rows)
  await begin(id, 'validate')
  await measured('validation', () => progress(id, 'validating'))
  const { state } = await until(id, ({ state }) => state !== 'validating')
  if (state !== 'validated')
    throw new Error(`The file is ${state}: ${JSON.stringify((await at(id)).errors).slice(0, 500)}`)
  await begin(id, 'start')
  await measured('import', () => progress(id, 'processing'))
  let exported = 0
  await measured('import beside an export', async () => {
    const both = exportAll().then((count) => {
      exported = count
    })
    const done = await progress(id, 'processing')
    await both
    return done
  })
  const last = await at(id)
  console.log(
    `The import is ${last.state} at row ${last.processed_rows_count} of ${rows}, errors: ${last.errors_count};`,
  )
  console.log(`${exported} leads were exported beside it.`)
  await measured('deletion of an attribute', () => deleteAttribute('region').then(() => leads))
}

const { values } = parseArgs({
  options: {
    program: { type: 'string', default: built },
    leads: { type: 'string', default: '100000' },
    rows: { type: 'string', default: '30000' },
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '15' },
    only: { type: 'string' },
  },
})
const leads = Number(values.leads)
const filled = await fill(keptFolder(leads), leads, console.log)
const folder = mkdtempSync(join(tmpdir(), 'accord-during-'))
let server: Server | undefined
try {
  cpSync(join(filled.folder, 'data'), join(folder, 'data'), { recursive: true })
  server = await serve(values.program, folder)
  const { token } = filled
  await run(server, token, {
    leads,
    rows: Number(values.rows),
    aSecond: Number(values.rate),
    seconds: Number(values.seconds),
    only: values.only,
  })
} finally {
  const { process: child } = server ?? {}
  if (child && child.exitCode === null) {
    const ended = new Promise((done) => child.once('close', done))
    child.kill()
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}
