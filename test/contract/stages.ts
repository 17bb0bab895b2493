// Inserts records in states that only background work or time produces, such as a failed delivery
// or a running import, for the operations that need them.
import { createHash } from 'node:crypto'
import type { OperationId } from '../../src/contract/types.ts'
import { digestOf } from '../../src/resources/authentication/password-links.ts'
import { unsubscribeToken } from '../../src/resources/marketing/unsubscribe.ts'
import { start, type TestServer } from '../support/app.ts'
import { document, type SchemaObject } from '../support/schema.ts'
import type { World } from './support.ts'

const timestamps = { created_at: start, updated_at: start }

/**
 * Adds records to `world.main`, `world.spare`, `world.texts`, and to `world.at` for operations that
 * need a separate record.
 */
export async function stage(world: World): Promise<void> {
  await stageJobs(world)
  await stageDelivery(world)
  await stageImports(world)
  await stageLead(world)
  await stageQuote(world)
  await stageHandOver(world)
  await stageMerges(world)
  await stageMail(world)
  await stageMarketing(world)
  await stageErasure(world)
  await stageSignIn(world)
  const { db } = world.server.store
  const form = await db
    .selectFrom('web_forms')
    .select('form_id')
    .where('id', '=', world.main['web-forms'] ?? 0)
    .executeTakeFirst()
  world.texts.form_id = form?.form_id ?? ''
}

async function stageJobs({ server: { store }, main, spare }: World): Promise<void> {
  for (const world of [main, spare]) {
    const { id } = await store.db
      .insertInto('jobs')
      .values({ kind: 'test.note', payload: '{}', state: 'buried', run_at: start, attempts: 5, ...timestamps })
      .returning('id')
      .executeTakeFirstOrThrow()
    world.jobs = id
  }
}

async function stageErasure({ server: { store }, main, spare }: World): Promise<void> {
  for (const world of [main, spare]) {
    const { id } = await store.db
      .insertInto('person_erasures')
      .values({ person_id: 1_000_000, receipt: JSON.stringify({ removed: [], kept: [], backups: [] }), ...timestamps })
      .returning('id')
      .executeTakeFirstOrThrow()
    world.erasures = id
  }
}

async function stageDelivery({ server: { store }, main }: World): Promise<void> {
  const { id } = await store.db
    .insertInto('webhook_deliveries')
    .values({
      webhook_id: main.webhooks ?? 0,
      dedupe_key: 'event:1',
      message_id: 'msg_1_1',
      event_id: 1,
      event: 'lead.update.after',
      entity_type: 'leads',
      entity_id: main.leads ?? null,
      state: 'failed',
      finished_at: start,
      ...timestamps,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  main.deliveries = id
}

/** Inserts copies of the import in states that only the worker sets. */
async function stageImports(world: World): Promise<void> {
  const { server, main, at } = world
  const { store } = server
  const { id: _id, ...like } = await store.db
    .selectFrom('imports')
    .selectAll()
    .where('id', '=', main.imports ?? 0)
    .executeTakeFirstOrThrow()
  const copy = async (operation: OperationId, changes: Partial<typeof like>): Promise<number> => {
    const { id } = await store.db
      .insertInto('imports')
      .values({ ...like, ...changes })
      .returning('id')
      .executeTakeFirstOrThrow()
    at[operation] = { imports: id }
    return id
  }
  await copy('startImport', { state: 'validated', rows_count: 1 })
  await copy('undoImport', { state: 'completed', rows_count: 1 })
  await copy('cancelImport', { state: 'processing', rows_count: 1 })
  const failed = await copy('downloadImportErrorReport', { state: 'completed', rows_count: 1, invalid_rows_count: 1 })
  await store.db
    .insertInto('import_errors')
    .values({ import_id: failed, row: 2, column: 'name', code: 'required', message: 'The field is required.' })
    .execute()
  for (const entity_type of ['leads', 'persons', 'organizations', 'products'] as const)
    await store.db
      .insertInto('import_records')
      .values({ import_id: main.imports ?? 0, entity_type, record_id: main[entity_type] ?? 0, did: 'created' })
      .execute()
}

/** Creates a lead with a person of its own, of which a quote can be made. */
async function stageLead({ server, at }: World): Promise<void> {
  const { body } = await server.admin.post('/leads', { title: 'Quoted', lead_value: 1, person: { name: 'Quoted' } })
  at.convertLeadToQuote = { leads: body.data.id }
}

/** Inserts a copy of the quote that was sent. */
async function stageQuote({ server: { store }, main, at }: World): Promise<void> {
  const all = store.db
    .selectFrom('quotes')
    .selectAll()
    .where('id', '=', main.quotes ?? 0)
  const { id: _id, ...like } = await all.executeTakeFirstOrThrow()
  const sent = { status: 'sent' as const, number: 'Q-2025-0001', number_key: 'q-2025-0001', sent_at: start }
  const { id } = await store.db
    .insertInto('quotes')
    .values({ ...like, ...sent })
    .returning('id')
    .executeTakeFirstOrThrow()
  at.reviseQuote = { quotes: id }
}

/** Creates a lead of the user that is handed over. */
async function stageHandOver({ server, spare, at }: World): Promise<void> {
  const users = spare.users ?? 0
  await server.admin.post('/leads', { title: 'Handed over', lead_value: 1, user_id: users })
  at.handOverUser = { users }
}

/** Creates two persons and two organizations to merge, and some that were merged. */
async function stageMerges({ server, at }: World): Promise<void> {
  for (const [entity, merge, unmerge] of [
    ['persons', 'mergePersons', 'unmergePerson'],
    ['organizations', 'mergeOrganizations', 'unmergeOrganization'],
  ] as const)
    for (const operation of [merge, unmerge]) {
      at[operation] = {}
      for (const key of [entity, 'merged']) {
        const { body } = await server.admin.post(`/contacts/${entity}`, { name: `${operation} ${key}` })
        Object.assign(at[operation] ?? {}, { [key]: body.data.id })
      }
      const { [entity]: into = 0, merged: other = 0 } = at[operation] ?? {}
      if (operation === unmerge) await server.admin.post(`/contacts/${entity}/${into}/merge`, { ids: [other] })
    }
}

/** Inserts a file with the bytes of an existing file. */
async function stageFile({ server: { store } }: World, changes: object): Promise<number> {
  const { id: _id, ...like } = await store.db.selectFrom('files').selectAll().executeTakeFirstOrThrow()
  const { id } = await store.db
    .insertInto('files')
    .values({ ...like, ...changes })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

async function stageMail(world: World): Promise<void> {
  const { server, main } = world
  const raw = await stageFile(world, { name: 'message.eml', owner_type: 'emails', owner_id: main.emails ?? null })
  await server.store.db
    .updateTable('emails')
    .set({ raw_file_id: raw })
    .where('id', '=', main.emails ?? 0)
    .execute()
}

async function stageMarketing({ server, main, spare, at, texts }: World): Promise<void> {
  const { services } = server.app
  for (const [world, address] of [
    [main, 'first@example.com'],
    [spare, 'second@example.com'],
  ] as const) {
    const { id } = await server.store.db
      .insertInto('suppressions')
      .values({ address, reason: 'manual', ...timestamps })
      .returning('id')
      .executeTakeFirstOrThrow()
    world.suppressions = id
  }
  const { id: _id, ...like } = await server.store.db
    .selectFrom('marketing_campaigns')
    .selectAll()
    .where('id', '=', main.campaigns ?? 0)
    .executeTakeFirstOrThrow()
  const { id } = await server.store.db
    .insertInto('marketing_campaigns')
    .values({ ...like, is_active: 1 })
    .returning('id')
    .executeTakeFirstOrThrow()
  at.runCampaign = { campaigns: id }
  const send = await server.store.db
    .insertInto('campaign_sends')
    .values({
      campaign_id: id,
      occurrence: 'once',
      address: 'fourth@example.com',
      // A run does not write to this person again.
      person_id: spare.persons ?? null,
      message_id: 'fourth@localhost',
      state: 'uncertain',
      ...timestamps,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  at.resendCampaignSend = { campaigns: id, sends: send.id }
  texts.token = unsubscribeToken(services, 'third@example.com')
}

const sessionSecret = 'walker'.padEnd(43, '-')
const sessionHash = createHash('sha256').update(sessionSecret).digest('hex')
const always = '2100-01-01T00:00:00.000Z'

/** Inserts a session without expiry, and the password reset link of the contract's example. */
async function stageSignIn({ server: { store }, main, spare }: World): Promise<void> {
  const session = { user_id: 1, is_remembered: 1, last_used_at: start, expires_at: always, ...timestamps }
  const begin = async (secret_hash: string): Promise<number> => {
    const row = store.db
      .insertInto('sessions')
      .values({ ...session, secret_hash })
      .returning('id')
    return (await row.executeTakeFirstOrThrow()).id
  }
  main.sessions = await begin(sessionHash)
  spare.sessions = await begin('of a session whose cookie is lost')
  const schemas = (document.components?.schemas ?? {}) as Record<string, SchemaObject>
  const [example] = (schemas.ResetPassword?.examples ?? []) as [{ email: string; token: string }?]
  const { email, token } = example ?? { email: '', token: '' }
  const reset = { user_id: 1, secret_hash: digestOf(token, email), expires_at: always, created_at: start }
  await store.db.insertInto('password_resets').values(reset).execute()
}

/** Returns the cookies of a browser, either signed in as the administrator or not signed in. */
export function cookies({ app }: TestServer, isSignedIn: boolean): Record<string, string> {
  const { encryption } = app.services
  const value = isSignedIn
    ? encryption.hmac(`csrf:session:${sessionHash}`)
    : `nonce.${encryption.hmac('csrf:visitor:nonce')}`
  const session = isSignedIn ? `accord_session=${sessionSecret}; ` : ''
  return { cookie: `${session}XSRF-TOKEN=${value}`, 'x-xsrf-token': value }
}
