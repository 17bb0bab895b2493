// Encrypts the header and query parameter values of webhooks, and removes the plain values from
// events and stored responses. Adds the user who last changed a workflow, because the workflow runs
// with the rights of this user.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import type { MigrationTools } from '../migrate.ts'
import { addColumn, integer, nullable, references } from '../schema/columns.ts'

const mask = '••••••'
/** The character around the number of a placeholder. Stored texts cannot contain it. */
const mark = '\u0000'

interface Pair {
  key: string
  value: string
}
interface Row {
  id: number
  url: string
  query_params_sealed: string
  headers_sealed: string
}

export async function up(db: Kysely<unknown>, dialect: Dialect, means: MigrationTools): Promise<void> {
  for (const column of ['query_params', 'headers'])
    await db.schema.alterTable('webhooks').renameColumn(column, `${column}_sealed`).execute()
  await sealValues(db, means)
  await maskEvents(db)
  await addColumn(db, dialect, 'workflows', 'changed_by_id', references('users', 'set null'))
  await nameChangers(db, dialect)
  /**
   * The user whose rights the workflow had. Null for webhook subscriptions. Not a foreign key,
   * because a deleted user must be distinguishable from no user.
   */
  await addColumn(db, dialect, 'webhook_deliveries', 'acting_user_id', nullable(integer()))
}

async function sealValues(db: Kysely<unknown>, { seal }: MigrationTools): Promise<void> {
  const { rows } = await sql<Row>`select id, url, query_params_sealed, headers_sealed from webhooks`.execute(db)
  for (const { id, url, query_params_sealed, headers_sealed } of rows) {
    const { address, query } = withoutQuery(url)
    const params = [...query, ...(JSON.parse(query_params_sealed) as Pair[])]
    const headers = JSON.parse(headers_sealed) as Pair[]
    const sealed = (pairs: readonly Pair[]): string =>
      JSON.stringify(pairs.map(({ key, value }) => ({ key, sealed: value === '' ? null : seal(value) })))
    await sql`update webhooks set url = ${address}, query_params_sealed = ${sealed(params)},
      headers_sealed = ${sealed(headers)} where id = ${id}`.execute(db)
    await maskAnswers(db, id, [...params, ...headers])
  }
}

/** Masks the values in stored responses, because receivers may have repeated them. */
async function maskAnswers(db: Kysely<unknown>, webhookId: number, pairs: readonly Pair[]): Promise<void> {
  const hidden = pairs
    .flatMap(({ value }) => [value, encodeURIComponent(value), ...value.split(/\s+/)])
    .filter(({ length }) => length >= 4)
    .sort((one, other) => other.length - one.length)
  if (hidden.length === 0) return
  const deliveries = await sql<{ id: number; attempts: string }>`select id, attempts from webhook_deliveries
    where webhook_id = ${webhookId} and attempts <> '[]'`.execute(db)
  for (const { id, attempts } of deliveries.rows) {
    const told = JSON.stringify(
      (JSON.parse(attempts) as { response_excerpt: string | null }[]).map((attempt) => ({
        ...attempt,
        response_excerpt:
          attempt.response_excerpt &&
          hidden.reduce((text, each) => text.replaceAll(each, '…'), attempt.response_excerpt),
      })),
    )
    if (told !== attempts) await sql`update webhook_deliveries set attempts = ${told} where id = ${id}`.execute(db)
  }
}

type Snapshot = { url?: string; headers?: Pair[]; query_params?: Pair[] }

async function maskEvents(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ id: number; before: string | null; after: string | null }>`select id, before, after
    from events where entity_type = 'webhooks'`.execute(db)
  for (const { id, before, after } of rows)
    await sql`update events set before = ${maskSnapshot(before)}, after = ${maskSnapshot(after)} where id = ${id}`.execute(
      db,
    )
}

function maskSnapshot(text: string | null): string | null {
  if (text === null) return null
  const snapshot = JSON.parse(text) as Snapshot
  const { url, headers, query_params: params } = snapshot
  const masked = (pairs: readonly Pair[]): Pair[] =>
    pairs.map(({ key, value }) => ({ key, value: value === '' ? '' : mask }))
  const { address, query } = withoutQuery(url ?? '')
  return JSON.stringify({
    ...snapshot,
    ...(url !== undefined && { url: address }),
    ...(headers && { headers: masked(headers) }),
    ...(params && { query_params: masked([...query, ...params]) }),
  })
}

/**
 * The user of the last change in the event log, or null when this user was deleted. If the log has
 * no user, the first administrator, because workflows had all rights before.
 */
async function nameChangers(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const yes = sql.raw(dialect.flagLiteral(true))
  const change = sql`events.entity_type = 'workflows' and events.entity_id = workflows.id
    and events.name in ('settings.workflow.create.after', 'settings.workflow.update.after')
    and events.actor_type = 'user'`
  const last = sql`select events.actor_id from events where ${change} order by events.id desc limit 1`
  const first = sql`select min(users.id) from users join roles on roles.id = users.role_id
    where users.is_active = ${yes} and users.view_permission = 'global' and roles.permission_type = 'all'`
  await sql`update workflows set changed_by_id = case when exists (select 1 from events where ${change})
    then (select users.id from users where users.id = (${last})) else (${first}) end`.execute(db)
}

/** Splits a URL and its query parameters. Placeholders may contain separators of URLs. */
function withoutQuery(url: string): { address: string; query: Pair[] } {
  const parts = url.split(/(\{%[^%]*%\})/)
  const kept = parts.filter((_part, index) => index % 2 === 1)
  const plain = parts.map((part, index) => (index % 2 === 1 ? `${mark}${(index - 1) / 2}${mark}` : part)).join('')
  const restored = (text: string): string =>
    text
      .split(mark)
      .map((part, index) => (index % 2 === 1 ? (kept[Number(part)] ?? '') : part))
      .join('')
  const [beforeHash = ''] = plain.split('#')
  const at = beforeHash.indexOf('?')
  if (at < 0) return { address: url, query: [] }
  const query = beforeHash
    .slice(at + 1)
    .split('&')
    .filter((pair) => !pair.startsWith('=') && pair !== '')
    .map((pair) => {
      const [key = '', ...value] = pair.split('=')
      return { key: restored(decoded(key)), value: restored(decoded(value.join('='))) }
    })
  return { address: restored(beforeHash.slice(0, at) + plain.slice(beforeHash.length)), query }
}

function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}
