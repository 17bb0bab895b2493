// Handlers of the erasure of persons, and of its receipts.
import type { Selectable } from 'kysely'
import type { DB } from '../../../../db/tables.gen.ts'
import type { Schema } from '../../../contract/types.ts'
import { enqueue } from '../../../jobs/queue.ts'
import { type Context, now } from '../../../kernel/context.ts'
import { notFound } from '../../../kernel/errors.ts'
import type { Handler, Handlers } from '../../../kernel/handler.ts'
import { conditions, valueField } from '../../../kernel/query/filter.ts'
import { page } from '../../../kernel/query/page.ts'
import { answering, inSteps } from '../../../kernel/write/idempotency.ts'
import { type InTransaction, transaction } from '../../../kernel/write/write.ts'
import { assertFound } from './assert-found.ts'
import { erase } from './erase.ts'
import { exportPersonData } from './export.ts'
import { purgeErased } from './purge.ts'

declare module '../../../kernel/context.ts' {
  interface SliceFunctions {
    /** Returns the backups in the folder of backups, and the last one elsewhere. */
    knownBackups: () => { name: string; created_at: string }[]
  }
}

const stayUntilRemoved = 'It stays until `accord backup --keep` removes it, or you do.'

async function erasePerson(ctx: InTransaction, id: number, keepsSent: boolean) {
  await assertFound(ctx, id)
  const { id: receipt } = await ctx.db
    .insertInto('person_erasures')
    .values({ person_id: id, user_id: ctx.user?.id ?? null, created_at: now(ctx), updated_at: now(ctx) })
    .returning('id')
    .executeTakeFirstOrThrow()
  const { removed, kept, sha256s, tables } = await erase(ctx, id, receipt, keepsSent)
  const backups = ctx.services.slices.knownBackups().map((each) => ({ ...each, removed_by: stayUntilRemoved }))
  const text = JSON.stringify({ removed, kept, backups })
  await ctx.db.updateTable('person_erasures').set({ receipt: text }).where('id', '=', receipt).execute()
  await enqueue(ctx, purgeErased, { erasure_id: receipt, tables, sha256s })
  return { data: await present(ctx, await find(ctx, receipt)), message: 'Person erased.' }
}

type Row = Selectable<DB['person_erasures']>

async function find(ctx: Context, id: number): Promise<Row> {
  const row = await ctx.db.selectFrom('person_erasures').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound('erasure', id)
  return row
}

const listPersonErasures: Handler<'listPersonErasures'> = async (ctx, { query }) => {
  const all = ctx.db.selectFrom('person_erasures').selectAll()
  const found = conditions(ctx, query, { person_id: valueField('person_erasures.person_id') }, []).reduce(
    (rows, condition) => rows.where(condition),
    all,
  )
  const sort = { id: 'person_erasures.id' }
  const { rows, links, meta } = await page(ctx, found, { ...query, sort: ['-id'] }, sort, sort.id)
  return { data: await Promise.all(rows.map((row) => present(ctx, row))), links, meta }
}

async function present(ctx: Context, row: Row): Promise<Schema<'PersonErasure'>> {
  const { count } = await ctx.db
    .selectFrom('erased_identities')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('person_erasure_id', '=', row.id)
    .executeTakeFirstOrThrow()
  const stored = JSON.parse(row.receipt) as Pick<Schema<'PersonErasure'>, 'removed' | 'kept' | 'backups'>
  return {
    id: row.id,
    person_id: row.person_id,
    user_id: row.user_id,
    ...stored,
    suppressed: Number(count),
    lifted_at: row.lifted_at,
    purged_at: row.purged_at,
    created_at: row.created_at,
  }
}

export const privacyHandlers = {
  exportPersonData,
  erasePerson: inSteps((ctx: Context, { params, body }: { params: { id: number }; body?: Schema<'PersonErase'> }) =>
    answering(ctx, (ctx) => erasePerson(ctx as InTransaction, params.id, body?.sent_quotes !== 'pseudonymize'), {
      isLong: true,
    }),
  ),
  listPersonErasures,
  getPersonErasure: async (ctx, { params }) => ({
    data: await present(ctx, await find(ctx, params.id)),
    message: 'The receipt of an erasure.',
  }),
  liftPersonErasure: (ctx, { params: { id } }) =>
    transaction(ctx, async (ctx) => {
      const { lifted_at } = await find(ctx, id)
      await ctx.db.deleteFrom('erased_identities').where('person_erasure_id', '=', id).execute()
      const changes = { lifted_at: lifted_at ?? now(ctx), updated_at: now(ctx) }
      await ctx.db.updateTable('person_erasures').set(changes).where('id', '=', id).execute()
      return { message: 'The addresses are no longer suppressed.' }
    }),
} satisfies Partial<Handlers>
