// Reads the migration times that identify the installation of a PostgreSQL database, and checks the
// requirements for the server. Changes nothing.

import type { Client } from 'pg'
import { progressTable } from '../transfer/progress.ts'
import { connectAlone, connectTimeoutMs } from './connection.ts'

export interface PostgresProbe {
  /** The reason why the database cannot be used, as the end of a sentence, or null. */
  problem: string | null
  /** Whether the server cannot be reached or does not accept connections yet. */
  isUnreachable?: boolean
  /** Whether the database has its initial rows (seed.ts). */
  isSeeded: boolean
  /** The ISO timestamps of the first applied migrations. */
  migratedAt: string[]
}

/** The facts about the server that Accord depends on. */
export interface ServerFacts {
  /** The value of `server_version_num`, such as 150004 for 15.4. */
  version: number
  encoding: string
  /** Whether the collation `und-x-icu` exists, which names are compared with. */
  hasCollation: boolean
  hasExtension: boolean
  /** Whether the extension is installed on the server and this user may create it. */
  mayCreateExtension: boolean
  /** The first schema in the search path; null when there is none. */
  schema: string | null
  mayCreateTables: boolean
  timezone: string
  user: string
  database: string
}

const minVersion = 15
const utcNames = ['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT', 'Universal', 'Zulu']

/** Returns the first unmet requirement as the end of a sentence, or null. */
export function requirementProblem(facts: ServerFacts, isPooled: boolean): string | null {
  const { encoding, schema, user, database } = facts
  const version = `${Math.floor(facts.version / 10_000)}.${facts.version % 10_000}`
  if (facts.version < minVersion * 10_000)
    return `its server is PostgreSQL ${version}. Accord CRM needs PostgreSQL ${minVersion} or newer`
  if (encoding !== 'UTF8')
    return `its encoding is ${encoding}. Create a database with UTF8: createdb --encoding=UTF8 --template=template0`
  if (!facts.hasCollation) return 'its server has no collation "und-x-icu". Install a PostgreSQL that is built with ICU'
  if (isPooled && !utcNames.includes(facts.timezone))
    return `its sessions have the time zone ${facts.timezone}, which cannot be set through a pooler. Run on the server: alter role "${user}" set timezone = 'UTC'`
  if (schema === null || !facts.mayCreateTables)
    return `the user ${user} may not create tables there. Run as its owner: grant create on schema ${schema ?? 'public'} to "${user}"`
  if (!facts.hasExtension && !facts.mayCreateExtension)
    return `the extension pg_trgm is missing there. Run as a superuser: create extension pg_trgm, or: grant create on database "${database}" to "${user}"`
  return null
}

const factsQuery = `
  select current_setting('server_version_num')::int as version,
    (select pg_encoding_to_char(encoding) from pg_database where datname = current_database()) as encoding,
    exists (select from pg_collation where collname = 'und-x-icu') as "hasCollation",
    exists (select from pg_extension where extname = 'pg_trgm') as "hasExtension",
    exists (select from pg_available_extensions where name = 'pg_trgm')
      and has_database_privilege(current_database(), 'create') as "mayCreateExtension",
    current_schema() as schema,
    coalesce(has_schema_privilege(current_schema(), 'create'), false) as "mayCreateTables",
    current_setting('TimeZone') as timezone, current_user as "user", current_database() as database`

const tablesQuery = `
  select tables.relname as name, exists (select from pg_attribute
    where attrelid = tables.oid and attname = 'applied_at' and not attisdropped) as "isDated"
  from pg_class as tables where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace`

export async function probePostgres(
  url: string,
  { migrations, isPooled }: { migrations: number; isPooled: boolean },
): Promise<PostgresProbe> {
  const nothing = { isSeeded: false, migratedAt: [] }
  let client: Client | undefined
  try {
    client = await connectAsCommand(url)
    const { rows } = await client.query<ServerFacts>(factsQuery)
    const problem = requirementProblem(rows[0] as ServerFacts, isPooled)
    if (problem !== null) return { ...nothing, problem }
    const tables = (await client.query<{ name: string; isDated: boolean }>(tablesQuery)).rows
    const applied = tables.find(({ name }) => name === 'migrations')
    if (tables.length > 0 && !applied?.isDated)
      return { ...nothing, problem: 'it contains tables of another program. Create a database for Accord CRM alone' }
    if (tables.some(({ name }) => name === progressTable))
      return {
        ...nothing,
        problem: 'it contains an unfinished copy. Run accord migrate-to again, from the same source',
      }
    const isSeeded =
      tables.some(({ name }) => name === 'roles') && (await client.query('select 1 from roles limit 1')).rows.length > 0
    const times =
      applied === undefined
        ? []
        : (
            await client.query<{ at: string }>(
              `select to_char(applied_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at
              from migrations order by name collate "C" limit ${migrations}`,
            )
          ).rows
    return { problem: null, isSeeded, migratedAt: times.map(({ at }) => at) }
  } catch (cause) {
    return { ...nothing, problem: `it cannot be opened: ${reasonOf(cause)}`, isUnreachable: isUnreachable(cause) }
  } finally {
    await client?.end().catch(() => undefined)
  }
}

/**
 * Returns the schema of the tables, and whether servers or workers are connected, with their
 * addresses. Processes that connect through a pooler may be missed.
 */
export async function findServerUse(url: string): Promise<{ schema: string; isOpen: boolean; clients: string[] }> {
  const client = await connectAsCommand(url)
  try {
    const { rows } = await client.query<{ schema: string; clients: string[] }>(
      `select current_schema() as schema, array(select distinct coalesce(host(client_addr), 'a local socket')
      from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and application_name = 'accord') as clients`,
    )
    const { schema, clients } = rows[0] ?? { schema: '', clients: [] }
    return { schema, isOpen: clients.length > 0, clients }
  } finally {
    await client.end()
  }
}

/**
 * Opens a connection whose application name differs from that of a store, so that `findServerUse`
 * of another command does not count it as a server.
 */
const connectAsCommand = (url: string): Promise<Client> =>
  connectAlone({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'accord-command',
  })

const unreachableCodes = /^(ECONN\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|EPIPE|08\w{3}|57P0[1-5])$/

function isUnreachable(cause: unknown): boolean {
  if (cause instanceof AggregateError) return cause.errors.some(isUnreachable)
  if (!(cause instanceof Error)) return false
  // A proxy closes the connection while the server behind it does not accept any.
  return (
    unreachableCodes.test(String((cause as NodeJS.ErrnoException).code)) ||
    cause.message.startsWith('Connection terminated')
  )
}

/**
 * Returns the reason of a connection error without its final period. For a host with several
 * addresses, Node throws an AggregateError without a message.
 */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return [...new Set(cause.errors.map(reasonOf))].join(', ')
  if (!(cause instanceof Error)) return String(cause)
  if ('code' in cause && cause.code === 'ERR_INVALID_URL')
    return 'the URL is not valid. Write special characters of the password as %XX, such as %40 for @'
  return (cause.message || String((cause as NodeJS.ErrnoException).code)).replace(/\.$/, '')
}
