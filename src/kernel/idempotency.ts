// Idempotency-Key (DOMAIN 3.1): the first completed answer to a key is kept for 24 hours per token and given again. The mark
// that the work is done is written in the work's own transaction, so a crash between the two cannot do it twice.
import type { Db } from '../../db/open.ts'
import { daysMs, stamp } from './clock.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

/**
 * Answers from the store, or runs `work` and stores its answer. Throws 422 `idempotency_key_reused` for another request
 * under the same key, 409 `idempotency_in_flight` while the first is running or when its answer was lost.
 */
export async function once(
  ctx: Context,
  key: string,
  request: unknown,
  work: (ctx: Context) => Promise<Answer>,
): Promise<Answer & { replayed: boolean }> {
  const { db } = ctx
  const token = ctx.token?.id
  if (token === undefined) return { ...(await work(ctx)), replayed: false }
  // Keyed, because a body may hold a password.
  const hash = ctx.services.seal.fingerprint(JSON.stringify([ctx.operation, ctx.path, ctx.dryRun, request]))
  await db.deleteFrom('idempotency_keys').where('expires_at', '<', stamp(ctx.time)).execute()

  const reserved = await db
    .insertInto('idempotency_keys')
    .values({
      token_id: token,
      key,
      request_hash: hash,
      state: 'in_flight',
      status: null,
      headers: null,
      body: null,
      created_at: stamp(ctx.time),
      expires_at: stamp(new Date(ctx.time.getTime() + daysMs(1))),
    })
    .onConflict((conflict) => conflict.columns(['token_id', 'key']).doNothing())
    .returning('id')
    .executeTakeFirst()

  if (!reserved) {
    const first = await db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('token_id', '=', token)
      .where('key', '=', key)
      .executeTakeFirst()
    if (first && first.request_hash !== hash) throw new Problem('idempotency_key_reused')
    if (first?.state !== 'completed' || first.body === null)
      throw new Problem('idempotency_in_flight', undefined, { headers: { 'retry-after': '1' } })
    return {
      status: Number(first.status),
      headers: JSON.parse(first.headers ?? '{}') as Record<string, string>,
      body: ctx.services.seal.open(first.body),
      replayed: true,
    }
  }

  const mine = (inner: Db) => inner.updateTable('idempotency_keys').where('id', '=', reserved.id)
  try {
    const answer = await work({
      ...ctx,
      beforeCommit: async (inner) => {
        await mine(inner).set({ state: 'committed' }).execute()
      },
    })
    await mine(db)
      .set({
        state: 'completed',
        status: answer.status,
        headers: JSON.stringify(answer.headers),
        body: ctx.services.seal.close(answer.body),
      })
      .execute()
    return { ...answer, replayed: false }
  } catch (error) {
    // A refused request has changed nothing: the key is free again. Once something was committed it stays taken.
    await db.deleteFrom('idempotency_keys').where('id', '=', reserved.id).where('state', '=', 'in_flight').execute()
    throw error
  }
}
