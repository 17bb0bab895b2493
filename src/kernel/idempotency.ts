// Idempotency-Key (DOMAIN 3.1): the first completed answer to a key is kept for 24 hours per token or session and given again. It is
// stored in the transaction of the work, so a crash loses both or neither. Operations of several transactions mark the first of them;
// after a crash between two of them the key answers 409 with the records that were changed.
import type { Selectable, Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { DB } from '../../db/tables.gen.ts'
import type { OperationId } from '../contract/types.ts'
import { daysMs, stamp } from './clock.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'
import { isDead, ownName } from './owners.ts'
import { ifItCan } from './unavailable.ts'
import { transaction } from './write.ts'

/**
 * How long a request holds a key for its work. Then, or once its process is seen to be gone, whoever asks again takes the key over,
 * and what the first one does cannot be committed any more.
 */
const leaseMs = 60_000

/** Operations that take several transactions, or wait for more than the database: a write lock must not be held for them. */
const inSteps: ReadonlySet<string> = new Set<OperationId>([
  'createAttribute',
  'createUser',
  'massDestroyActivities',
  'massDestroyAttributes',
  'massDestroyCampaigns',
  'massDestroyEmails',
  'massDestroyLeads',
  'massDestroyMarketingEvents',
  'massDestroyOrganizations',
  'massDestroyPersons',
  'massDestroyProducts',
  'massDestroyQuotes',
  'massDestroyTags',
  'massDestroyUsers',
  'massUpdateActivities',
  'massUpdateAttributes',
  'massUpdateEmails',
  'massUpdateLeads',
  'massUpdatePersons',
  'massUpdateUsers',
  'previewEmailTemplate',
  'replayWebhook',
  'replayWebhookDelivery',
  'testWebhook',
  'testWorkflow',
  'validateImport',
])

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

/**
 * Answers from the store, or runs `work` and stores its answer. Throws 422 `idempotency_key_reused` for another request
 * under the same key, 409 `idempotency_in_flight` while the first is running, or when it died between two of its transactions.
 */
export async function once(
  ctx: Context,
  key: string,
  request: unknown,
  work: (ctx: Context) => Promise<Answer>,
): Promise<Answer & { replayed: boolean }> {
  const { db } = ctx
  const owner = ownerOf(ctx)
  if (!owner) return { ...(await work(ctx)), replayed: false }
  // Keyed, because a body may hold a password.
  const hash = ctx.services.seal.fingerprint(JSON.stringify([ctx.operation, ctx.path, ctx.dryRun, request]))
  const expired = db.selectFrom('idempotency_keys').select('id').where('expires_at', '<', stamp(ctx.time)).limit(1)
  // Whoever has nothing to delete need not wait for a commit.
  if (await expired.executeTakeFirst())
    await db.deleteFrom('idempotency_keys').where('expires_at', '<', stamp(ctx.time)).execute()

  const holder = ownName()
  const reserved = await db
    .insertInto('idempotency_keys')
    .values({
      [owner.column]: owner.id,
      key,
      request_hash: hash,
      state: 'in_flight',
      held_by: holder,
      status: null,
      headers: null,
      body: null,
      created_at: stamp(ctx.time),
      expires_at: stamp(new Date(ctx.time.getTime() + daysMs(1))),
    })
    .onConflict((conflict) => conflict.columns([owner.column, 'key']).doNothing())
    .returning('id')
    .executeTakeFirst()
    .catch((cause: unknown) => {
      // It may be written all the same, when the disk did not confirm it.
      abandon(holder)
      // The token or session ended while the request waited, such as by a sign-out.
      throw ctx.services.store.dialect.isForeignKeyViolation(cause) ? new Problem('unauthenticated') : cause
    })

  if (!reserved) {
    const first = await db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where(owner.column, '=', owner.id)
      .where('key', '=', key)
      .executeTakeFirst()
    if (first && isGivenUp(ctx, first)) {
      await takeOver(ctx, first, { hash, holder })
      return perform(ctx, { id: first.id, holder }, work)
    }
    if (first && first.request_hash !== hash) throw new Problem('idempotency_key_reused')
    if (first?.state === 'committed' && isLeft(ctx, first)) throw await answerLost(ctx, first)
    if (first?.state !== 'completed' || first.body === null) throw inFlight()
    return {
      status: Number(first.status),
      headers: JSON.parse(first.headers ?? '{}') as Record<string, string>,
      body: ctx.services.seal.open(first.body),
      replayed: true,
    }
  }
  return perform(ctx, { id: reserved.id, holder }, work)
}

interface Held {
  id: number
  holder: string
}

async function perform(
  ctx: Context,
  { id, holder }: Held,
  work: (ctx: Context) => Promise<Answer>,
): Promise<Answer & { replayed: boolean }> {
  const { db, services } = ctx
  const mine = (inner: Db) => inner.updateTable('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
  /** In the transaction of the work: it fails when another request has taken the key over. */
  const claim = async (inner: Db, changes: Changes): Promise<void> => {
    const { numUpdatedRows } = await mine(inner).set(changes).executeTakeFirst()
    if (numUpdatedRows > 0n) return
    // Gone with its token or session, by this very work; or somebody else has taken it over.
    const other = inner.selectFrom('idempotency_keys').select('id').where('id', '=', id)
    if (await other.executeTakeFirst()) throw inFlight()
  }
  const completed = ({ status, headers, body }: Answer): Changes => ({
    state: 'completed',
    status,
    headers: JSON.stringify(headers),
    body: services.seal.close(body),
  })
  try {
    if (ctx.operation === null || !inSteps.has(ctx.operation)) {
      const answer = await transaction(ctx, async (inner) => {
        const answer = await work(inner)
        await claim(inner.db, completed(answer))
        return answer
      })
      return { ...answer, replayed: false }
    }
    const begun = { state: 'committed', headers: JSON.stringify({ 'x-request-id': ctx.requestId }) } as const
    const answer = await work({ ...ctx, beforeCommit: (inner) => claim(inner, begun) })
    // It is done: that its answer cannot be kept is no reason to say that it was not.
    await ifItCan(() => mine(db).set(completed(answer)).execute())
    return { ...answer, replayed: false }
  } catch (error) {
    // A refused request has changed nothing: the key is free again. Once something was committed it stays taken.
    const mineOnly = db.deleteFrom('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
    abandon(holder)
    await ifItCan(() => mineOnly.where('state', '=', 'in_flight').execute())
    throw error
  }
}

/** Of this process: whose work has failed, in case the disk was too full to write that down. The newest are enough. */
const abandoned = new Set<string>()
const mostAbandoned = 1000

function abandon(holder: string): void {
  abandoned.add(holder)
  const [oldest] = abandoned
  if (abandoned.size > mostAbandoned && oldest !== undefined) abandoned.delete(oldest)
}

const inFlight = (): Problem => new Problem('idempotency_in_flight', undefined, { headers: { 'retry-after': '1' } })

/** How many records the answer names. */
const maxNamed = 20

/** Nobody will ever give the first answer. The caller is told what was changed, and decides what is left to do. */
async function answerLost({ db }: Context, { headers, created_at: since }: Row): Promise<Problem> {
  const { 'x-request-id': request = '' } = JSON.parse(headers ?? '{}') as { 'x-request-id'?: string }
  const rows = await db
    .selectFrom('events')
    .select(['name', 'entity_type', 'entity_id'])
    .where('request_id', '=', request)
    .where('created_at', '>=', since)
    .where('entity_id', 'is not', null)
    .orderBy('id')
    .limit(maxNamed + 1)
    .execute()
  const named = rows.slice(0, maxNamed).map((row) => `${row.entity_type} ${row.entity_id} (${row.name})`)
  const changed = named.length === 0 ? '' : ` It changed: ${named.join(', ')}${rows.length > maxNamed ? ' …' : ''}.`
  return new Problem(
    'idempotency_in_flight',
    `The server died during the request with this Idempotency-Key.${changed} Look at the records before you send another request with a new key.`,
  )
}

type Row = Selectable<DB['idempotency_keys']>
type Changes = Updateable<DB['idempotency_keys']>

/** Nothing was committed, and nothing will be. */
const isGivenUp = (ctx: Context, row: Row): boolean => row.state === 'in_flight' && isLeft(ctx, row)

/** Whoever worked on it has ended or takes too long. */
function isLeft(ctx: Context, { held_by: holder, created_at: since }: Row): boolean {
  return since < stamp(new Date(ctx.time.getTime() - leaseMs)) || abandoned.has(holder ?? '') || isDead(holder ?? '')
}

/** Throws 409 when another one was faster. */
async function takeOver({ db, time }: Context, row: Row, { hash, holder }: { hash: string; holder: string }) {
  const { numUpdatedRows } = await db
    .updateTable('idempotency_keys')
    .set({
      held_by: holder,
      request_hash: hash,
      created_at: stamp(time),
      expires_at: stamp(new Date(time.getTime() + daysMs(1))),
    })
    .where('id', '=', row.id)
    .where('state', '=', 'in_flight')
    .where('held_by', 'is', row.held_by)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw inFlight()
}

/** Whose keys they are; undefined for callers who could not be told from others when they ask again. */
function ownerOf({ token, session }: Context): { column: 'token_id' | 'session_id'; id: number } | undefined {
  if (token) return { column: 'token_id', id: token.id }
  return session ? { column: 'session_id', id: session.id } : undefined
}
