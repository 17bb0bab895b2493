// Starts a whole server in memory for a test: a copy of a migrated and seeded database, a stopped
// clock, and fast password hashing. Every reply is checked against the contract. Tests use only the
// API.
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import { sql } from 'kysely'
import type { ContractDocument } from '../../codegen/read.ts'
import { migrate } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import type { Store } from '../../db/store.ts'
import { type App, type AppOptions, buildApp } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import type { Published } from '../../src/installation/published-contract.ts'
import { toYamlInWorker } from '../../src/installation/yaml.ts'
import { hashPassword } from '../../src/kernel/auth/passwords.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { createOffload } from '../../src/kernel/runtime/offload.ts'
import type { AccordEvent, Emitter } from '../../src/kernel/write/events.ts'
import { contract } from './contract.ts'
import {
  closeAsTemplate,
  type Engine,
  type Image,
  imageOf,
  openEmpty,
  openImage,
  reopen,
  testEngine,
} from './engine.ts'
import { createFiredEvents } from './fired-events.ts'
import { headerChecker } from './headers.ts'
import { isHostile, stepSequences } from './hostile.ts'
import { newName } from './names.ts'
import { findRepetitions } from './repeated-events.ts'
import { storeOf } from './store.ts'

export { contract } from './contract.ts'
export const start = '2026-03-01T09:30:00.000Z'
export const adminPassword = 'correct horse battery'

let yaml: Promise<Buffer> | undefined

const published: Published = {
  json: Buffer.from(JSON.stringify(contract)),
  yaml() {
    yaml ??= toYamlInWorker(JSON.stringify(contract))
    return yaml
  },
  etag: '"test"',
  hash: contract['x-contract-hash'],
  state: 'ok',
}

export function testConfig(changes: Partial<Config> = {}, engine: Engine = testEngine): Config {
  const { config } = readConfig({
    ACCORD_ENV: 'test',
    ACCORD_LOG_LEVEL: 'silent',
    ACCORD_RATE_LIMIT: 'off',
    ACCORD_ADMIN_PASSWORD: adminPassword,
  })
  return {
    ...config,
    databaseUrl: engine === 'postgres' ? 'postgres://localhost/accord' : 'sqlite::memory:',
    passwordMemoryKiB: 1024,
    ...changes,
  }
}

const images = new Map<Engine, Promise<Image>>()

/** Returns the image of the seeded database, which is built once per worker thread. */
export function seededImage(engine: Engine = testEngine): Promise<Image> {
  const image = images.get(engine) ?? buildImage(engine)
  images.set(engine, image)
  return image
}

/** Migrates and seeds an empty database. Without a hash, the administrator cannot sign in. */
export async function prepareStore(store: Store, adminPasswordHash = 'none'): Promise<void> {
  await migrate(store)
  await seed(store, { adminName: 'Example Admin', adminEmail: 'admin@example.com', adminPasswordHash, now: start })
}

async function buildImage(engine: Engine): Promise<Image> {
  const store = await openEmpty(engine)
  await prepareStore(store, await hashPassword(testConfig(), adminPassword))
  if (isHostile && engine === 'postgres') await sql.raw(stepSequences).execute(store.db)
  const made = await imageOf(store)
  await closeAsTemplate(store)
  return made
}

export interface Reply<T = any> {
  status: number
  headers: LightMyRequestResponse['headers']
  body: T
  text: string
}

export interface Caller {
  get<T = any>(path: string, options?: Call): Promise<Reply<T>>
  post<T = any>(path: string, body?: unknown, options?: Call): Promise<Reply<T>>
  put<T = any>(path: string, body?: unknown, options?: Call): Promise<Reply<T>>
  delete<T = any>(path: string, options?: Call): Promise<Reply<T>>
  token: string | null
}

interface Call {
  headers?: Record<string, string>
  query?: Record<string, string>
}

export interface TestServer {
  app: App
  store: Store
  clock: { now(): Date; set(to: string): void; advanceMs(by: number): void }
  /** A caller with a token of the seeded administrator. */
  admin: Caller
  anonymous: Caller
  /** Returns a caller with a new token of the user. */
  as(userId: number, abilities?: string[]): Promise<Caller>
  caller(token: string | null): Caller
  /** Returns the names of the events since the last call, in order. */
  events(): string[]
  /** The same events in full. */
  seen: AccordEvent[]
  /** Runs all due background jobs. */
  work(): Promise<void>
  /** Runs the scheduler once, at the time of the test clock. */
  tick(): Promise<boolean>
  inject(options: InjectOptions): Promise<LightMyRequestResponse>
  /**
   * Stores an image of the database. `rewind` restores it, or another image, which is faster than
   * starting a new server.
   */
  keep(): Promise<void>
  rewind(to?: Image): Promise<void>
  close(): Promise<void>
}

export interface ServerOptions {
  config?: Partial<Config>
  published?: () => Published | null
  /** Replaces the generated contract. */
  contract?: Record<string, unknown>
  extensions?: ((events: Emitter) => void)[]
  /** The test does not fail when a reply violates the contract, because the server handles it. */
  refusesBreaches?: boolean
  mailer?: AppOptions['mailer']
  outbound?: AppOptions['outbound']
  offload?: AppOptions['offload']
  volume?: AppOptions['volume']
  /** Receives the log lines of level `info` and above. */
  lines?: AppOptions['lines']
  /** The default is the engine of the test run. */
  engine?: Engine
  /** Opens a store from the image. The default opens it in memory. */
  open?: (image: Image) => Store | Promise<Store>
}

/**
 * Starts a server in memory, which the test must close. The functions of using.ts do both. Paths
 * are relative to /api/admin, except paths that start with `//`.
 */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { open = openImage, engine = testEngine } = options
  let kept = await seededImage(engine)
  let current = await open(kept)
  const store = storeOf(() => current)
  let time = new Date(start)
  const clock = {
    now: () => time,
    set: (to: string) => {
      time = new Date(to)
    },
    advanceMs: (by: number) => {
      time = new Date(time.getTime() + by)
    },
  }
  const seen: AccordEvent[] = []
  const fired = createFiredEvents()
  const isRepeated = findRepetitions()
  // The server creates this folder for the first file.
  const dataDir = join(tmpdir(), newName('accord-test'))
  const breaches: string[] = []
  const headers = headerChecker((options.contract ?? contract) as ContractDocument)
  // Tests that walk over the whole contract post inbound mail without the secret. The tests of
  // inbound mail set another value.
  const config = testConfig(
    { dataDir, inboundOpen: true, ...(options.lines && { logLevel: 'info' }), ...options.config },
    engine,
  )
  const app = await buildApp({
    config,
    store,
    secret: 'test secret of at least thirty-two characters',
    contract: options.contract ?? contract,
    published: options.published ?? (() => published),
    clock,
    // Tests that count statements use `production`, which runs no self-checks.
    ...(options.mailer && { mailer: options.mailer }),
    ...(options.outbound && { outbound: options.outbound }),
    // Long limits, because other tests on the machine may slow this process down.
    offload: options.offload ?? createOffload({ maxRunMs: 100_000, maxWaitMs: 100_000, idleMs: 3_000 }),
    ...(options.volume && { volume: options.volume }),
    ...(options.lines && { lines: options.lines }),
    extensions: [
      (events) =>
        events.on('*', (event) => {
          fired.add(event)
          if (!isRepeated(event)) seen.push(event)
        }),
      ...(options.extensions ?? []),
    ],
    ...(!options.refusesBreaches && { onBreach: (findings: string[]) => void breaches.push(...findings) }),
  })
  await app.http.ready()

  async function inject(request: InjectOptions): Promise<LightMyRequestResponse> {
    const reply = await app.http.inject(request)
    // The URL that the server received, because `inject` resolves `.` and `..` in paths.
    const { method = 'GET', url = '/' } = reply.raw.req
    const asked = { method, url }
    fired.answered(String(reply.headers['x-request-id']), asked)
    const found = [...breaches.splice(0), ...headers.findings(asked, reply.statusCode, reply.headers)]
    if (found.length > 0) throw new Error(`A reply breaks the contract:\n${found.join('\n')}`)
    return reply
  }

  function caller(token: string | null): Caller {
    const call = async (
      method: 'GET' | 'POST' | 'PUT' | 'DELETE',
      path: string,
      body: unknown,
      { headers = {}, query }: Call = {},
    ): Promise<Reply> => {
      const reply = await inject({
        method,
        url: path.startsWith('//') ? path.slice(1) : `/api/admin${path}`,
        headers: {
          accept: 'application/json',
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(query && { query }),
        ...(body !== undefined && {
          payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
        }),
      })
      const isJson = /[/+]json/.test(String(reply.headers['content-type'] ?? ''))
      return {
        status: reply.statusCode,
        headers: reply.headers,
        text: reply.body,
        body: isJson && reply.body !== '' ? JSON.parse(reply.body) : undefined,
      }
    }
    return {
      token,
      get: (path, request) => call('GET', path, undefined, request),
      post: (path, body, request) => call('POST', path, body, request),
      put: (path, body, request) => call('PUT', path, body, request),
      delete: (path, request) => call('DELETE', path, undefined, request),
    }
  }

  const tokenFor = async (userId: number, abilities: string[] = ['*']): Promise<string> =>
    (
      await issueToken(
        store.db,
        { userId, name: 'test', kind: 'personal', abilities, expiresAt: null, allowedIps: [] },
        start,
      )
    ).text

  return {
    app,
    store,
    clock,
    admin: caller(await tokenFor(1)),
    anonymous: caller(null),
    as: async (userId, abilities) => caller(await tokenFor(userId, abilities)),
    caller,
    events: () => seen.splice(0).map((event) => event.name),
    seen,
    work: () => app.worker.drain(),
    tick: () => app.scheduler.tick(),
    inject,
    keep: async () => {
      kept = await imageOf(current)
    },
    rewind: async (to = kept) => {
      current = options.open ? await current.close().then(() => open(to)) : await reopen(current, to)
      time = new Date(start)
      seen.length = 0
    },
    close: async () => {
      fired.close()
      await app.http.close()
      await store.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
