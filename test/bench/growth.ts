// `npm run bench -- --growth` sends each read of the contract at several numbers of leads, as three
// kinds of user, on SQLite and PostgreSQL, and prints those that grow. README.md explains it.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../db/store.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { fill, keptFolder } from './fill.ts'
import { type Read, readsOf } from './growth.requests.ts'
import { openTargets } from './scale.targets.ts'
import { copyOf, remove, start } from './servers.ts'

/** Sees everything, a fiftieth of all records, or nothing. */
const users = ['administrator', 'representative', 'newcomer'] as const
type User = (typeof users)[number]
type Engine = 'sqlite' | 'postgres'

export interface Growth {
  engine: Engine
  user: User
  operation: string
  path: string
  /** By number of leads: the time to answer, and the wait of `/healthz`, in milliseconds. */
  at: Record<number, { ms: number; wait: number; status: number }>
}

export interface Wish {
  leads: readonly number[]
  engines: readonly Engine[]
  only: RegExp
  program?: string
  /** Receives all measurements as JSON. */
  to?: string
}

/** Gives every fiftieth record to the representative, and adds a campaign for all persons. */
async function prepare(folder: string): Promise<Record<User, string>> {
  const store = openStore(`sqlite:${join(folder, 'data/accord.db')}`)
  const at = new Date().toISOString()
  const stamps = { created_at: at, updated_at: at }
  const { db } = store
  const tokens = {} as Record<User, string>
  for (const user of users) {
    const email = `${user}@example.com`
    const limited = user !== 'administrator'
    const { id } = await db
      .insertInto('users')
      .values({
        name: user,
        name_key: user,
        email,
        email_key: email,
        role_id: 1,
        view_permission: limited ? 'individual' : 'global',
        ...stamps,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    if (user === 'representative')
      for (const table of ['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'] as const)
        await db
          .updateTable(table)
          .set({ user_id: id })
          .where((eb) => eb(eb('id', '%', 50), '=', 7))
          .execute()
    const terms = { abilities: ['*'], expiresAt: null, allowedIps: [] } as const
    const token = await issueToken(db, { userId: id, name: 'growth', kind: 'personal', ...terms }, at)
    tokens[user] = token.text
  }
  await store.close()
  return tokens
}

interface Api {
  url: string
  tokens: Record<User, string>
}

async function call({ url, tokens }: Api, user: User, path: string, body?: unknown): Promise<[number, string]> {
  const reply = await fetch(`${url}/api/admin${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${tokens[user]}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return [reply.status, await reply.text()]
}

/** Asks for `/healthz` again and again until stopped. Returns the longest wait in milliseconds. */
function watchHealth(url: string): () => Promise<number> {
  let isDone = false
  let longest = 0
  const loop = (async () => {
    while (!isDone) {
      const since = performance.now()
      await (await fetch(`${url}/healthz`)).text()
      longest = Math.max(longest, performance.now() - since)
    }
  })()
  return async () => {
    isDone = true
    await loop
    return longest
  }
}

const times = 3
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

async function commit(api: Api): Promise<void> {
  for (;;) {
    const [status] = await call(api, 'administrator', '/tags', { name: `Growth ${process.hrtime.bigint()}` })
    if (status === 201) return
    if (status !== 503) throw new Error(`A tag could not be created: ${status}`)
    await pause(500)
  }
}

/** Measures one read after a commit, because a commit discards what the server keeps. */
async function measure(api: Api, user: User, path: string): Promise<{ ms: number; wait: number; status: number }> {
  let [ms, wait, status] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0]
  for (let time = 0; time < times; time++) {
    await commit(api)
    const since = performance.now()
    ;[status] = await call(api, user, path)
    const took = performance.now() - since
    // The server refuses requests after a read that held its event loop for long.
    if (status === 503) {
      await pause(500)
      time--
      continue
    }
    ms = Math.min(ms, took)
    // The wait matters where the server has much to do.
    if (ms < 20) wait = 0
    else {
      const longest = watchHealth(api.url)
      await call(api, user, path)
      wait = Math.min(wait, await longest())
    }
  }
  return { ms, wait, status }
}

export async function growth(wish: Wish, say: (text: string) => void): Promise<Growth[]> {
  const found = new Map<string, Growth>()
  const reads = readsOf(wish.only)
  for (const leads of wish.leads) {
    const filled = await fill(keptFolder(leads, 'more'), leads, say, 'more')
    const folder = copyOf(filled.folder)
    try {
      const tokens = await prepare(folder)
      for (const engine of wish.engines) {
        const opened = engine === 'sqlite' ? await sqlite(folder, wish.program) : await postgres(filled, folder, say)
        try {
          await campaign({ url: opened.url, tokens })
          for (const user of users)
            for (const read of reads) await note({ url: opened.url, tokens }, { engine, user, read, leads })
          say(`${engine}, ${leads} leads: ${reads.length} reads as ${users.length} users`)
          if (leads === Math.max(...wish.leads))
            say(await besideDearest({ url: opened.url, tokens }, [...found.values()], engine, leads))
        } finally {
          await opened.close()
        }
      }
    } finally {
      remove(folder)
    }
  }
  const all = [...found.values()]
  if (wish.to !== undefined) writeFileSync(wish.to, `${JSON.stringify(all)}\n`)
  return all

  async function note(
    api: Api,
    { engine, user, read, leads }: { engine: Engine; user: User; read: Read; leads: number },
  ): Promise<void> {
    const key = [engine, user, read.path].join()
    const entry = found.get(key) ?? { engine, user, ...read, at: {} }
    entry.at[leads] = await measure(api, user, read.path)
    found.set(key, entry)
  }
}

const quantile = (sorted: readonly number[], part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0

/** Measures others' `GET /leads` alone, and while two clients loop the ten dearest reads. */
async function besideDearest(api: Api, all: readonly Growth[], engine: Engine, leads: number): Promise<string> {
  const dearest = all
    .filter((row) => row.engine === engine && row.at[leads]?.status === 200)
    .sort((one, other) => (other.at[leads]?.ms ?? 0) - (one.at[leads]?.ms ?? 0))
    .slice(0, 10)
  let isDone = false
  const loop = async (): Promise<void> => {
    for (let index = 0; !isDone; index++) {
      const row = dearest[index % dearest.length] as Growth
      await call(api, row.user, row.path)
    }
  }
  const others = async (): Promise<string> => {
    const waits: number[] = []
    for (const until = performance.now() + 15_000; performance.now() < until; await pause(10)) {
      const since = performance.now()
      await call(api, 'administrator', '/leads')
      waits.push(performance.now() - since)
    }
    waits.sort((one, other) => one - other)
    return `p50 ${quantile(waits, 0.5).toFixed(1)} ms, p99 ${quantile(waits, 0.99).toFixed(1)} ms`
  }
  const alone = await others()
  const loops = [loop(), loop()]
  const beside = await others()
  isDone = true
  await Promise.all(loops)
  return `GET /leads at ${leads} leads on ${engine}: alone ${alone}; while two clients loop the ten dearest reads ${beside}`
}

async function campaign(api: Api): Promise<void> {
  const template = { name: `For all ${Date.now()}`, subject: 'News', content: 'News' }
  const [, made] = await call(api, 'administrator', '/settings/email-templates', template)
  const { id } = (JSON.parse(made) as { data: { id: number } }).data
  for (const audience of [{ type: 'all' }, { type: 'filter', filter: { q: 'dahl' } }]) {
    const body = { name: `${audience.type} ${Date.now()}`, subject: 'News', email_template_id: id, audience }
    const [status, text] = await call(api, 'administrator', '/settings/marketing/campaigns', body)
    if (status !== 201) throw new Error(text)
  }
}

type Opened = { url: string; close(): Promise<void> }

async function sqlite(folder: string, program?: string): Promise<Opened> {
  const server = await start('accord', folder, {
    settings: { ACCORD_WORKER: 'off' },
    ...(program !== undefined && { program }),
  })
  return { url: server.url, close: () => server.stop() }
}

async function postgres(
  filled: Parameters<typeof openTargets>[0],
  folder: string,
  say: (text: string) => void,
): Promise<Opened> {
  const { targets, close } = await openTargets({ ...filled, folder }, [1], say)
  const target = targets.at(-1)
  if (!target) throw new Error('The PostgreSQL server is missing.')
  return { url: target.url, close }
}

/** Returns the rows that grow or are long, the dearest first, and the number of all rows. */
export function growthTable(all: readonly Growth[], { ratio, ms }: { ratio: number; ms: number }): string {
  const rows = all.map((row) => {
    const numbers = Object.keys(row.at)
      .map(Number)
      .sort((a, b) => a - b)
    const [least, most] = [row.at[numbers[0] ?? 0], row.at[numbers.at(-1) ?? 0]]
    return {
      row,
      numbers,
      least: least?.ms ?? 0,
      most: most?.ms ?? 0,
      wait: most?.wait ?? 0,
      status: most?.status ?? 0,
    }
  })
  // Below five milliseconds the connection and the disturbances of the machine are most of it.
  const grown = rows.filter((each) => each.most > 5 && (each.most / Math.max(each.least, 1) > ratio || each.most > ms))
  grown.sort((a, b) => b.most - a.most)
  const lines = grown.map(({ row, numbers, least, most, wait, status }) => {
    const cells = numbers.map((number) => (row.at[number]?.ms ?? 0).toFixed(1))
    return `| ${row.engine} | ${row.user} | ${status} | \`${row.path}\` | ${cells.join(' | ')} | ${(most / least).toFixed(1)} | ${wait.toFixed(0)} |`
  })
  const numbers = Object.keys(all[0]?.at ?? {})
  return [
    `${grown.length} of ${all.length} reads grow more than ${ratio} times or take more than ${ms} ms.`,
    '',
    `| Engine | User | Status | Read | ${numbers.map((number) => `${number}`).join(' | ')} | Ratio | Wait of /healthz |`,
    `| --- | --- | ---: | --- |${' ---: |'.repeat(numbers.length + 2)}`,
    ...lines,
  ].join('\n')
}
