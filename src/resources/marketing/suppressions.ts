// Suppressed e-mail addresses, to which no campaign sends. Each address is stored
// once, in folded form for comparisons.

import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { asciiAddress } from '../../contract/input/email-addresses.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { always, type Sight } from '../../kernel/query/event-visibility.ts'
import { foldedField, timeField, valueField } from '../../kernel/query/filter.ts'
import { recordPage } from '../../kernel/query/page.ts'
import { addressKey } from '../../kernel/values/format.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { isErasedAddress } from '../persons/erase/personal-data.ts'
import { touchPersonsWithAddress } from '../persons/unsubscribed.ts'

type Row = Selectable<DB['suppressions']>
type NewSuppression = Pick<Schema<'Suppression'>, 'address' | 'reason'>

const entity = 'suppressions'

/**
 * Visibility rule for the events of suppressions. Every caller who may list suppressions sees all
 * of these events, because an address has no owner.
 */
export const suppressionSight: Sight = {
  lists: operations.listSuppressions,
  records: {
    table: 'suppressions',
    deleted: 'marketing.suppression.delete',
    inSight: ({ db }) => db.selectFrom('suppressions').select('suppressions.id'),
    wasInSight: () => always,
  },
}

const present = (row: Row): Schema<'Suppression'> => ({
  id: row.id,
  address: row.address,
  reason: row.reason as Schema<'Suppression'>['reason'],
  created_at: row.created_at,
})

const withAddress = ({ db }: Context, address: string) =>
  db.selectFrom('suppressions').selectAll().where('address', '=', address).executeTakeFirst()

/** Returns the given addresses that are suppressed, and those in place of an erased address. */
export async function suppressedAddresses({ db }: Context, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  if (addresses.length === 0) return new Set()
  // Former versions stored internationalized domains as they were sent.
  const forms = new Map(addresses.flatMap((each) => [each, asciiAddress(each)].map((form) => [form, each] as const)))
  const rows = await db
    .selectFrom('suppressions')
    .select('address')
    .where('address', 'in', [...forms.keys()])
    .execute()
  return new Set([...rows.flatMap(({ address }) => forms.get(address) ?? []), ...addresses.filter(isErasedAddress)])
}

/** Suppresses an address. Returns null when the address is already suppressed for any reason. */
export const suppress = (
  ctx: Context,
  { address: sent, reason }: NewSuppression,
): Promise<Schema<'Suppression'> | null> =>
  transaction(ctx, async (ctx) => {
    const address = addressKey(sent)
    if (await withAddress(ctx, address)) return null
    const { entity: made } = await write(
      ctx,
      'marketing.suppression.create',
      { entity, input: { address, reason } },
      async (ctx) => {
        const row = await ctx.db
          .insertInto('suppressions')
          .values({ address, reason, created_at: now(ctx), updated_at: now(ctx) })
          .returningAll()
          .executeTakeFirstOrThrow()
        await touchPersonsWithAddress(ctx, address)
        return { id: row.id, entity: present(row) }
      },
    )
    return made as Schema<'Suppression'>
  })

export const listSuppressions: Handler<'listSuppressions'> = (ctx, { query }) =>
  recordPage(ctx, ctx.db.selectFrom('suppressions').selectAll('suppressions'), query, {
    fields: {
      address: foldedField('suppressions.address'),
      reason: valueField('suppressions.reason'),
      created_at: timeField('suppressions.created_at'),
    },
    sort: { id: 'suppressions.id', address: 'suppressions.address', created_at: 'suppressions.created_at' },
    id: 'suppressions.id',
    present: (rows: Row[]) => rows.map(present),
  })

export const createSuppression: Handler<'createSuppression'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => {
    const { address, reason = 'manual' } = body
    const errors = new ValidationErrors()
    const known = await withAddress(ctx, addressKey(address))
    if (known) errors.taken('address', entity, known.id, 'The address is suppressed already.')
    errors.throwIfAny()
    const made = await suppress(ctx, { address, reason })
    return { data: made as Schema<'Suppression'>, message: 'Address suppressed.' }
  })

export const deleteSuppression: Handler<'deleteSuppression'> = (ctx, { params: { id } }) =>
  transaction(ctx, async (ctx) => {
    const row = await ctx.db.selectFrom('suppressions').selectAll().where('id', '=', id).executeTakeFirst()
    if (!row) throw notFound('suppression', id)
    await write(ctx, 'marketing.suppression.delete', { entity, input: {}, id, before: present(row) }, async (ctx) => {
      await ctx.db.deleteFrom('suppressions').where('id', '=', id).execute()
      await touchPersonsWithAddress(ctx, row.address)
      return { id, entity: null }
    })
    return { message: 'Address is no longer suppressed.' }
  })
