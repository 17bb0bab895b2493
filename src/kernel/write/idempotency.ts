// Idempotency-Key (DOMAIN 3.1): the first answer to a key is stored for 24 hours per token or session, in the transaction of the
// work, and given again. After a crash a repeated key gets that answer, is carried out for the first time, or goes on behind
// the last transaction that was committed.

import type { Selectable, Updateable } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Db } from '../../../db/store.ts'
import type { DB } from '../../../db/tables.gen.ts'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'
import { daysMs, stamp } from '../runtime/clock.ts'
import { isProcessGone, newOwnerId } from '../runtime/process-identity.ts'
import { bestEffort } from '../runtime/unavailable.ts'
import { transaction } from './write.ts'

/**
 * How long a request holds a key for its work. Then, or once its process is seen to be gone, whoever asks again takes the key over,
 * and what the first one does cannot be committed any more.
 */
const leaseMs = 60_000

const stepped = new WeakSet<object>()

/**
 * Marks a handler that opens its own transactions, or none. Others run in one transaction, which holds the write lock: a handler
 * that takes several transactions, or waits for more than the database, must not. What it commits it stores through `ctx.keyed`.
 */
export function inSteps<H extends object>(handler: H): H {
  stepped.add(handler)
  return handler
}

export const isInSteps = (handler: object): boolean => stepped.has(handler)

/** What a handler marked `inSteps` knows and stores of a request with an Idempotency-Key. */
export interface KeyedRequest {
  /** What the last committed transaction of an earlier try stored; null when nothing was committed. */
  readonly progress: unknown
  /** Stores in a transaction how far the request is. Throws 409 when another request has taken the key over. */
  save(inner: Context, progress: unknown): Promise<void>
  /** Stores in a transaction the reply that the handler is about to return. */
  complete(inner: Context, reply: unknown): Promise<void>
}

/** The only transaction of a handler marked `inSteps`; its result is the reply, which is stored in it. */
export const answering = <T>(
  ctx: Context,
  work: (ctx: Context) => Promise<T>,
  options?: { isLong?: boolean },
): Promise<T> =>
  transaction(
    ctx,
    async (inner) => {
      const reply = await work(inner)
      await ctx.keyed?.complete(inner, reply)
      return reply
    },
    options,
  )

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

export interface Work {
  handle: (ctx: Context) => Promise<unknown>
  /** The answer that a reply of the handler makes. */
  render: (ctx: Context, reply: unknown) => Answer
  isInSteps: boolean
}

type Replayable = Answer & { replayed: boolean }

/**
 * Answers from the store, or does the work and stores its answer. Throws 422 `idempotency_key_reused` for another request
 * under the same key, 409 `idempotency_in_flight` while the first is running.
 */
export async function once(ctx: Context, key: string, request: unknown, work: Work): Promise<Replayable> {
  const { db } = ctx
  const owner = ownerOf(ctx)
  if (!owner) return { ...work.render(ctx, await work.handle(ctx)), replayed: false }
  // Keyed, because a body may hold a password.
  const hash = ctx.services.seal.hmac(JSON.stringify([ctx.operation, ctx.path, ctx.dryRun, request]))
  const expired = db.selectFrom('idempotency_keys').select('id').where('expires_at', '<', stamp(ctx.time)).limit(1)
  // Whoever has nothing to delete need not wait for a commit.
  if (await expired.executeTakeFirst())
    await db.deleteFrom('idempotency_keys').where('expires_at', '<', stamp(ctx.time)).execute()

  const holder = newOwnerId()
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
      abandoned.set(holder, true)
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
    if (first?.state === 'in_flight' && isLeft(ctx, first)) {
      await takeOver(ctx, first, { hash, holder })
      return perform(ctx, { id: first.id, holder, progress: null }, work)
    }
    if (first && first.request_hash !== hash) throw new Problem('idempotency_key_reused')
    // An earlier version stored no progress: what is left to do is not known.
    if (first?.state === 'committed' && first.body !== null && isLeft(ctx, first)) {
      const progress: unknown = JSON.parse(ctx.services.seal.decrypt(first.body))
      await takeOver(ctx, first, { hash, holder })
      return perform(ctx, { id: first.id, holder, progress }, work)
    }
    if (first?.state !== 'completed' || first.body === null) throw inFlight()
    // The first request may still wait for the disk.
    await ctx.services.store.whenDurable()
    return {
      status: Number(first.status),
      headers: JSON.parse(first.headers ?? '{}') as Record<string, string>,
      body: ctx.services.seal.decrypt(first.body),
      replayed: true,
    }
  }
  return perform(ctx, { id: reserved.id, holder, progress: null }, work)
}

interface Held {
  id: number
  holder: string
  progress: unknown
}

async function perform(ctx: Context, { id, holder, progress }: Held, work: Work): Promise<Replayable> {
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
    body: services.seal.encrypt(body),
  })
  const complete = async (inner: Context, reply: unknown): Promise<Answer> => {
    const answer = work.render(inner, reply)
    await claim(inner.db, completed(answer))
    return answer
  }
  const inOne = (): Promise<Answer> => transaction(ctx, async (inner) => complete(inner, await work.handle(inner)))
  const inSeveral = async (): Promise<Answer> => {
    let stored: Answer | undefined
    const keyed: KeyedRequest = {
      progress,
      save: (inner, progress) =>
        claim(inner.db, { state: 'committed', body: services.seal.encrypt(JSON.stringify(progress)) }),
      complete: async (inner, reply) => {
        stored = await complete(inner, reply)
      },
    }
    const reply = await work.handle({ ...ctx, keyed })
    if (stored) return stored
    const answer = work.render(ctx, reply)
    // It is done: that its answer cannot be stored is no reason to say that it was not.
    await bestEffort(() => mine(db).set(completed(answer)).execute())
    return answer
  }
  try {
    return { ...(await (work.isInSteps ? inSeveral() : inOne())), replayed: false }
  } catch (error) {
    // A refused request has changed nothing: the key is free again. Once something was committed it stays taken.
    const mineOnly = db.deleteFrom('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
    abandoned.set(holder, true)
    await bestEffort(() => mineOnly.where('state', '=', 'in_flight').execute())
    throw error
  }
}

/** Of this process: whose work has failed, in case the disk was too full to write that down. The newest are enough. */
const maxAbandoned = 1000
const abandoned = new LRUCache<string, true>({ max: maxAbandoned })

const inFlight = (): Problem => new Problem('idempotency_in_flight', undefined, { headers: { 'retry-after': '1' } })

type Row = Selectable<DB['idempotency_keys']>
type Changes = Updateable<DB['idempotency_keys']>

/** Whoever worked on it has ended or takes too long. */
function isLeft(ctx: Context, { held_by: holder, created_at: since }: Row): boolean {
  return (
    since < stamp(new Date(ctx.time.getTime() - leaseMs)) || abandoned.has(holder ?? '') || isProcessGone(holder ?? '')
  )
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
    .where('state', '=', row.state)
    .where('held_by', 'is', row.held_by)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw inFlight()
}

/** Whose keys they are; undefined for callers who could not be told from others when they ask again. */
function ownerOf({ token, session }: Context): { column: 'token_id' | 'session_id'; id: number } | undefined {
  if (token) return { column: 'token_id', id: token.id }
  return session ? { column: 'session_id', id: session.id } : undefined
}
