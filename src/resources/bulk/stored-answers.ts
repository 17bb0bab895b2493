// The answers of bulk writes with an Idempotency-Key, one row for each batch, stored in the
// transaction of the batch. A repeated request gets them without carrying its lines out again.
import { createHash } from 'node:crypto'
import type { SentLine } from '../../contract/input/sent.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { OwnKey } from '../../kernel/write/idempotency.ts'
import type { InTransaction } from '../../kernel/write/write.ts'
import type { Answer } from './run-line.ts'

export interface StoredBatch {
  position: number
  lines: number
  hash: string
  answers: string
}

/** Returns the first stored batch that begins at the position or after it. */
export const storedBatch = ({ db }: Context, key: OwnKey, position: number): Promise<StoredBatch | undefined> =>
  db
    .selectFrom('bulk_answers')
    .select(['position', 'lines', 'hash', 'answers'])
    .where('idempotency_key_id', '=', key.id)
    .where('position', '>=', position)
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()

/** Returns the stored answers. Throws 422 when the lines are not those that were answered. */
export function answersTo(ctx: Context, { hash, answers }: StoredBatch, lines: readonly SentLine[]): string {
  if (hashOf(ctx, lines) !== hash) throw new Problem('idempotency_key_reused')
  return ctx.services.encryption.decrypt(answers)
}

export async function storeAnswers(
  ctx: InTransaction,
  key: OwnKey,
  { position, lines, answers }: { position: number; lines: readonly SentLine[]; answers: readonly Answer[] },
): Promise<void> {
  await key.renew(ctx)
  await ctx.db
    .insertInto('bulk_answers')
    .values({
      idempotency_key_id: key.id,
      position,
      lines: lines.length,
      hash: hashOf(ctx, lines),
      answers: ctx.services.encryption.encrypt(answers.map((each) => `${JSON.stringify(each)}\n`).join('')),
    })
    .execute()
}

function hashOf({ services }: Context, lines: readonly SentLine[]): string {
  const hash = createHash('sha256')
  for (const { number, bytes } of lines) hash.update(`${number}:${bytes.length}:`).update(bytes)
  return services.encryption.hmac(hash.digest('hex'))
}
