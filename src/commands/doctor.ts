// `accord doctor`: looks at everything an installation needs, changes nothing, and says what to do about what is wrong.
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { pending } from '../../db/migrate.ts'
import { openStore, type Store, storeExists } from '../../db/open.ts'
import { finding as searchFinding } from '../../db/search.ts'
import type { Config } from '../config.ts'
import { publishedOf, secretFile } from '../data.ts'
import { loadExtensions } from '../extensions.ts'
import { createMailer } from '../mail/outbound.ts'
import { generatedContract, isGeneratedCurrent } from '../package.ts'
import { holdersOfEverything } from '../resources/roles/ceiling.ts'

/** Null when all is well, else what is wrong and what to do. */
type Finding = string | null

export async function doctorCommand(config: Config): Promise<void> {
  const store = storeExists(config.databaseUrl) ? await opened(config) : null
  const checks: [what: string, look: () => Finding | Promise<Finding>][] = [
    [`Node ${process.versions.node}`, nodeVersion],
    [`Data folder ${config.dataDir}`, () => dataFolder(config)],
    ['Secret', () => secret(config)],
    [`Database ${config.databaseUrl}`, () => database(store)],
    ['Migrations', () => withTables(store, migrations)],
    ['Administrator', () => withTables(store, administrator)],
    ['Search', () => withTables(store, search)],
    ['Jobs', () => withTables(store, jobs)],
    ['Outgoing mail', () => mail(config)],
    ['Contract', contract],
    ['Documentation', () => documentation(config)],
    ['Listeners', () => listeners(config)],
    [`Port ${config.port} on ${config.host}`, () => port(config)],
  ]
  let broken = 0
  for (const [what, look] of checks) {
    const finding = await Promise.resolve()
      .then(look)
      .catch((cause: unknown) => (cause instanceof Error ? cause.message : String(cause)))
    if (finding !== null) broken++
    console.log(finding === null ? `ok      ${what}` : `BROKEN  ${what}: ${finding}`)
  }
  if (typeof store !== 'string') await store?.close()
  console.log(broken === 0 ? 'Everything is in order.' : `${broken} of ${checks.length} checks failed.`)
  if (broken > 0) process.exitCode = 1
}

type Opened = Store | string | null

/** The store, or why it does not open. */
async function opened(config: Config): Promise<Store | string> {
  try {
    return openStore(config.databaseUrl)
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > 20 || (major === 20 && minor >= 19)
    ? null
    : 'Accord CRM needs Node 20.19 or newer. Install it, then run npm ci again.'
}

function dataFolder({ dataDir }: Config): Finding {
  const found = statSync(dataDir, { throwIfNoEntry: false })
  if (!found) return 'it does not exist. Run: accord install'
  if (!found.isDirectory()) return 'it is not a folder. Set ACCORD_DATA_DIR to one.'
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return `this user cannot write to it. Run: chown -R "$USER" ${dataDir}`
  }
  return (found.mode & 0o007) === 0 ? null : `everybody on this machine can enter it. Run: chmod 700 ${dataDir}`
}

function secret(config: Config): Finding {
  if (config.secret !== null) return null
  const path = secretFile(config)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return 'ACCORD_SECRET is not set and the data folder has none. Run: accord install'
  if ((found.mode & 0o077) !== 0) return `other users can read ${path}. Run: chmod 600 ${path}`
  return readFileSync(path, 'utf8').trim().length >= 32
    ? null
    : `${path} holds less than 32 characters. Restore it from a backup.`
}

async function database(store: Opened): Promise<Finding> {
  if (store === null) return 'it does not exist. Run: accord install'
  if (typeof store === 'string')
    return `it cannot be opened (${store}). Check the path and its rights, or restore a backup.`
  const findings = await store.dialect.findings(store.db as never)
  if (findings.length === 0) return null
  const more = findings.length > 3 ? ` and ${findings.length - 3} more` : ''
  return `${findings.slice(0, 3).join(' ')}${more} Stop the server and restore a backup.`
}

function withTables(store: Opened, look: (store: Store) => Promise<Finding>): Finding | Promise<Finding> {
  return store === null || typeof store === 'string' ? 'cannot be looked at without a database.' : look(store)
}

async function migrations(store: Store): Promise<Finding> {
  const due = await pending(store)
  return due.length === 0 ? null : `${due.length} are to be applied (${due.join(', ')}). Run: accord migrate`
}

async function administrator(store: Store): Promise<Finding> {
  const found = await holdersOfEverything(store.db)
    .where('users.password_hash', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return found
    ? null
    : 'no active user holds every permission. Run: accord install, or accord user create --role Administrator'
}

async function search({ db, dialect }: Store): Promise<Finding> {
  const found = await searchFinding(db, dialect)
  return found === null ? null : `the index is not that of the records: ${found} Run: accord search rebuild`
}

async function jobs({ db }: Store): Promise<Finding> {
  const { count } = await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', '=', 'buried')
    .executeTakeFirstOrThrow()
  return Number(count) === 0
    ? null
    : `${count} ${count === 1 ? 'was' : 'were'} given up. Look with: accord jobs list --state buried, and try again with: accord jobs retry`
}

/** Without a server for it nothing is wrong: mails wait. */
async function mail({ smtpUrl, mailDomain }: Config): Promise<Finding> {
  if (smtpUrl === null) return null
  const mailer = createMailer({ url: smtpUrl, domain: mailDomain })
  try {
    const problem = await mailer.check()
    return problem === null ? null : `${problem} See ACCORD_SMTP_URL.`
  } finally {
    mailer.close()
  }
}

function contract(): Finding {
  return isGeneratedCurrent() ? null : 'openapi.yaml has changed since it was generated from. Run: accord regenerate'
}

function documentation(config: Config): Finding {
  const published = publishedOf(config)()
  if (published === null) return 'the contract is not published in the data folder. Run: accord install'
  const isSame = published.document['x-contract-hash'] === generatedContract()['x-contract-hash']
  return isSame ? null : 'it shows another version of the contract than this program follows. Run: accord regenerate'
}

async function listeners(config: Config): Promise<Finding> {
  await loadExtensions(config.listeners)
  return null
}

/** Free, or answered by this very product. */
async function port({ host, port }: Config): Promise<Finding> {
  const problem = await new Promise<string | null>((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    probe.listen({ host, port }, () => probe.close(() => resolve(null)))
  })
  if (problem === null) return null
  if (problem !== 'EADDRINUSE') return `it cannot be opened (${problem}). Change ACCORD_HOST or ACCORD_PORT.`
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  const answer = await fetch(`http://${address}:${port}/healthz`, { signal: AbortSignal.timeout(2000) })
    .then((reply) => reply.json() as Promise<{ status?: string; version?: string }>)
    .catch(() => null)
  return answer?.status === 'ok' && typeof answer.version === 'string'
    ? null
    : 'another program listens there. Stop it, or set ACCORD_PORT.'
}
