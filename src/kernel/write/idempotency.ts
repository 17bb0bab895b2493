// Implements the header Idempotency-Key. The reply to the first request with a key is
// stored for 24 hours, in the transaction of the work. A repeated request gets the stored reply. If
// a crash interrupted the first request, a repeated request continues after its last committed
// transaction. A user has at most 10,000 stored replies.

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
 * The milliseconds for which a request reserves its key. After that time, or when the process of
 * the request has ended, a repeated request takes the key over. The first request can then no
 * longer commit.
 */
const leaseMs = 60_000

/**
 * The number of stored replies of a user, over all tokens and sessions. The oldest ones are deleted
 * at every hundredth key, so that a client that sends new keys all day does not fill the disk.
 */
const maxStored = 10_000
const trimEvery = 100

/**
 * Marks a handler that opens its own transactions, or none. With an Idempotency-Key, an unmarked
 * handler runs in one transaction, which blocks other writers. A marked handler stores its progress
 * through `ctx.keyed`.
 */
export const inSteps = <H extends object>(handler: H): H => Object.assign(handler, { isInSteps: true })

export const isInSteps = (handler: object): boolean => 'isInSteps' in handler

/**
 * Reads and stores the progress of a request with an Idempotency-Key. Used by handlers marked
 * `inSteps`.
 */
export interface KeyedRequest {
  /**
   * The progress that an earlier attempt stored with its last committed transaction. Null when
   * there is none.
   */
  readonly progress: unknown
  /**
   * Stores the progress in the transaction of `inner`. Throws 409 when another request has taken
   * the key over.
   */
  save(inner: Context, progress: unknown): Promise<void>
  /** Stores the reply in the transaction of `inner`, before the handler returns the reply. */
  complete(inner: Context, reply: unknown): Promise<void>
}

/**
 * Runs the only transaction of a handler marked `inSteps`. Returns the result of `work` and stores
 * it as the reply, in the same transaction.
 */
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

/** Identifies a request. The hash is an HMAC, because a body may contain a password. */
const fingerprintOf = (ctx: Context, request: unknown): string =>
  ctx.services.encryption.hmac(JSON.stringify([ctx.operation, ctx.path, ctx.dryRun, request]))

/** Returns whether the key has a stored reply of this request. */
export async function hasStoredReply(ctx: Context, key: string, request: unknown): Promise<boolean> {
  const owner = ownerOf(ctx)
  if (!owner) return false
  const stored = await ctx.db
    .selectFrom('idempotency_keys')
    .select('id')
    .where(owner.column, '=', owner.id)
    .where('key', '=', key)
    .where('state', '=', 'completed')
    .where('request_hash', '=', fingerprintOf(ctx, request))
    .where('expires_at', '>=', stamp(ctx.time))
    .executeTakeFirst()
  return stored !== undefined
}

export interface StoredReply {
  status: number
  headers: Record<string, string>
  body: string
}

export interface Work {
  handle: (ctx: Context) => Promise<unknown>
  /** Converts the result of a handler to the form in which the reply is stored. */
  render: (ctx: Context, reply: unknown) => StoredReply
  isInSteps: boolean
}

type Replayable = StoredReply & { replayed: boolean }

/**
 * Returns the stored reply of the key, or does the work and stores its reply. Throws 422
 * `idempotency_key_reused` when the key was used for a different request. Throws 409
 * `idempotency_in_flight` while the first request is running.
 */
export async function once(ctx: Context, key: string, request: unknown, work: Work): Promise<Replayable> {
  const owner = ownerOf(ctx)
  if (!owner) return { ...work.render(ctx, await work.handle(ctx)), replayed: false }
  const { first, ...held } = await reserve(ctx, owner, key, fingerprintOf(ctx, request))
  if (!first) return perform(ctx, held, work)
  // An erasure removes stored replies that show an erased person.
  if (first.body === null) throw new Problem('state_conflict', 'The reply to the first request was erased.')
  // The stored reply may not be on disk yet, so it is sent only after the disk has confirmed the
  // commit.
  await ctx.services.store.whenDurable()
  return {
    status: Number(first.status),
    headers: JSON.parse(first.headers ?? '{}') as Record<string, string>,
    body: ctx.services.encryption.decrypt(first.body),
    replayed: true,
  }
}

/** A key for whose request the handler stores the answers itself, in parts. */
export interface OwnKey {
  readonly id: number
  /** Whether an earlier request with the key has stored answers. */
  readonly isKnown: boolean
  /** Whether the request with the key is completed. */
  readonly isCompleted: boolean
  /**
   * Renews the reservation in the transaction of `inner`. Throws 409 when another request has taken
   * the key over.
   */
  renew(inner: Context, isCompleted?: boolean): Promise<void>
  /** Ends the reservation, so that a repeated request can continue at once. */
  release(): Promise<void>
}

/**
 * Reserves the key for a request whose answers the handler stores itself. Returns null without a
 * key, for a dry run, and for a caller that owns no keys. Throws like `once`.
 */
export async function reserveOwn(ctx: Context, request: unknown): Promise<OwnKey | null> {
  const owner = ownerOf(ctx)
  const key = [ctx.headers['idempotency-key'] ?? []].flat().join(', ')
  if (!owner || key === '' || ctx.dryRun) return null
  const { db, services } = ctx
  const { first, id, holder, progress } = await reserve(ctx, owner, key, fingerprintOf(ctx, request))
  const known = services.encryption.encrypt('null')
  return {
    id,
    isKnown: first !== undefined || progress !== undefined,
    isCompleted: first !== undefined,
    renew(inner, isCompleted = false) {
      const at = services.clock.now()
      const times = { created_at: stamp(at), expires_at: stamp(new Date(at.getTime() + daysMs(1))) }
      return claim(inner.db, { id, holder }, { ...times, state: isCompleted ? 'completed' : 'committed', body: known })
    },
    async release() {
      abandoned.set(holder, true)
      const mine = db.updateTable('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
      // Another process knows only by the time that the reservation has ended.
      await bestEffort(() => mine.set({ created_at: stamp(new Date(0)) }).execute())
    },
  }
}

interface Held {
  id: number
  holder: string
  /** The stored progress of an earlier request; undefined when there is none. */
  progress?: unknown
}

/**
 * Reserves the key for this request. Returns the row of the first request as `first` when that is
 * completed.
 */
async function reserve(ctx: Context, owner: Owner, key: string, hash: string): Promise<Held & { first?: Row }> {
  const { db } = ctx
  const expired = db.selectFrom('idempotency_keys').select('id').where('expires_at', '<', stamp(ctx.time)).limit(1)
  // Deletes only if expired rows exist, because a deletion needs a commit, which takes time.
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
      // Lets a later request take the key over, because the row may exist although the commit
      // failed.
      abandoned.set(holder, true)
      // A foreign key violation means that the token or session was deleted while the request
      // waited, for example by a sign-out.
      throw ctx.services.store.dialect.isForeignKeyViolation(cause) ? new Problem('unauthenticated') : cause
    })
  if (reserved) {
    if (reserved.id % trimEvery === 0) await bestEffort(() => deleteOldest(ctx))
    return { id: reserved.id, holder }
  }
  const first = await db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where(owner.column, '=', owner.id)
    .where('key', '=', key)
    .executeTakeFirst()
  if (first?.state === 'in_flight' && isLeft(ctx, first)) {
    await takeOver(ctx, first, { hash, holder })
    return { id: first.id, holder }
  }
  if (first && first.request_hash !== hash) throw new Problem('idempotency_key_reused')
  // Continues after the stored progress. A row of an earlier program version has no progress, so
  // its request cannot continue.
  if (first?.state === 'committed' && first.body !== null && isLeft(ctx, first)) {
    const progress: unknown = JSON.parse(ctx.services.encryption.decrypt(first.body))
    await takeOver(ctx, first, { hash, holder })
    return { id: first.id, holder, progress }
  }
  if (first?.state !== 'completed') throw inFlight()
  return { id: first.id, holder, first }
}

/** Deletes the oldest stored replies of the user beyond `maxStored`. Unfinished requests stay. */
async function deleteOldest({ db, user }: Context): Promise<void> {
  const tokens = db
    .selectFrom('tokens')
    .select('id')
    .where('user_id', '=', user?.id ?? 0)
  const sessions = db
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', user?.id ?? 0)
  const stored = db
    .selectFrom('idempotency_keys')
    .select('id')
    .where((eb) => eb.or([eb('token_id', 'in', tokens), eb('session_id', 'in', sessions)]))
    .where('state', '=', 'completed')
  const last = await stored.orderBy('id', 'desc').offset(maxStored).limit(1).executeTakeFirst()
  if (last)
    await db
      .deleteFrom('idempotency_keys')
      .where('id', 'in', stored.where('id', '<=', last.id))
      .execute()
}

/**
 * Updates the row of the key in the transaction of the work. Throws when another request has taken
 * the key over.
 */
async function claim(inner: Db, { id, holder }: Held, changes: Changes): Promise<void> {
  const mine = inner.updateTable('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
  const { numUpdatedRows } = await mine.set(changes).executeTakeFirst()
  if (numUpdatedRows > 0n) return
  // No row was updated. The row was deleted with its token or session, or another request has taken
  // the key over. Only a takeover is an error.
  const other = inner.selectFrom('idempotency_keys').select('id').where('id', '=', id)
  if (await other.executeTakeFirst()) throw inFlight()
}

async function perform(ctx: Context, { id, holder, progress = null }: Held, work: Work): Promise<Replayable> {
  const { db, services } = ctx
  const mine = db.updateTable('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
  const completed = ({ status, headers, body }: StoredReply): Changes => ({
    state: 'completed',
    status,
    headers: JSON.stringify(headers),
    body: services.encryption.encrypt(body),
  })
  const complete = async (inner: Context, reply: unknown): Promise<StoredReply> => {
    const answer = work.render(inner, reply)
    await claim(inner.db, { id, holder }, completed(answer))
    return answer
  }
  const inOne = (): Promise<StoredReply> => transaction(ctx, async (inner) => complete(inner, await work.handle(inner)))
  const inSeveral = async (): Promise<StoredReply> => {
    let stored: StoredReply | undefined
    const keyed: KeyedRequest = {
      progress,
      save: (inner, progress) =>
        claim(
          inner.db,
          { id, holder },
          { state: 'committed', body: services.encryption.encrypt(JSON.stringify(progress)) },
        ),
      complete: async (inner, reply) => {
        stored = await complete(inner, reply)
      },
    }
    const reply = await work.handle({ ...ctx, keyed })
    if (stored) return stored
    const answer = work.render(ctx, reply)
    // The work is already committed, so the request succeeds even if the reply cannot be stored.
    await bestEffort(() => mine.set(completed(answer)).execute())
    return answer
  }
  try {
    return { ...(await (work.isInSteps ? inSeveral() : inOne())), replayed: false }
  } catch (error) {
    // Frees the key of a request that failed before its first commit and so changed nothing. After
    // a commit the key stays reserved.
    const mineOnly = db.deleteFrom('idempotency_keys').where('id', '=', id).where('held_by', '=', holder)
    abandoned.set(holder, true)
    await bestEffort(() => mineOnly.where('state', '=', 'in_flight').execute())
    throw error
  }
}

/**
 * The owner ids of failed requests of this process. Their keys may still be reserved, because a
 * full disk can prevent the deletion of the row. Only the newest `maxAbandoned` ids are stored.
 */
const maxAbandoned = 1000
const abandoned = new LRUCache<string, true>({ max: maxAbandoned })

const inFlight = (): Problem => new Problem('idempotency_in_flight', undefined, { headers: { 'retry-after': '1' } })

type Row = Selectable<DB['idempotency_keys']>
type Changes = Updateable<DB['idempotency_keys']>

/** Returns whether the request that reserved the key has ended or exceeded `leaseMs`. */
function isLeft(ctx: Context, { held_by: holder, created_at: since }: Row): boolean {
  return (
    since < stamp(new Date(ctx.time.getTime() - leaseMs)) || abandoned.has(holder ?? '') || isProcessGone(holder ?? '')
  )
}

/**
 * Reserves the key for this request instead of the earlier one. Throws 409 when a third request has
 * reserved the key first.
 */
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
    .where('held_by', 'is not distinct from', row.held_by)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw inFlight()
}

interface Owner {
  column: 'token_id' | 'session_id'
  id: number
}

/**
 * Returns the token or session to which the keys belong. Returns undefined for an anonymous caller,
 * because a repeated request could come from a different caller.
 */
function ownerOf({ token, session }: Context): Owner | undefined {
  if (token) return { column: 'token_id', id: token.id }
  return session ? { column: 'session_id', id: session.id } : undefined
}
