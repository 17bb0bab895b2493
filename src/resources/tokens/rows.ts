// Reads tokens without their hashes, and revokes tokens. Used by the token API and by sign-in and
// sign-out.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { transaction, write } from '../../kernel/write/write.ts'

/** The maximum number of unexpired tokens per user and kind. */
export const maxTokens = 50

/**
 * Returns a query for all tokens without their hashes. The query folds `name` into `name_key`,
 * because the table has no such column.
 */
export const tokenRows = (ctx: Context) => {
  const name: RawBuilder<string> = ctx.services.store.dialect.textKey('name')
  const tokens = ctx.db
    .selectFrom('tokens')
    .select([
      'id',
      'name',
      'kind',
      'abilities',
      'expires_at',
      'last_used_at',
      'last_used_ip',
      'allowed_ips',
      'user_id',
      'parent_id',
      'created_at',
    ])
    .select(sql<string>`${name}`.as('name_key'))
  return ctx.db.selectFrom(tokens.as('tokens')).selectAll('tokens')
}

type Row = Awaited<ReturnType<ReturnType<typeof tokenRows>['executeTakeFirstOrThrow']>>

export const presentToken = (row: Row): Schema<'Token'> => ({
  id: row.id,
  name: row.name,
  kind: row.kind as Schema<'Token'>['kind'],
  abilities: JSON.parse(row.abilities) as string[],
  expires_at: row.expires_at,
  last_used_at: row.last_used_at,
  last_used_ip: row.last_used_ip,
  allowed_ips: JSON.parse(row.allowed_ips) as string[],
  user_id: row.user_id,
  parent_id: row.parent_id,
  created_at: row.created_at,
})

/**
 * Revokes tokens and all tokens that were created with them, directly or indirectly. Each
 * revocation has its own events. A revoked token is refused as soon as the transaction commits.
 */
export const revokeTokens = (ctx: Context, ids: readonly number[]): Promise<void> =>
  transaction(ctx, async (ctx) => {
    if (ids.length === 0) return
    const family = ctx.db
      .withRecursive('family(id)', (db) =>
        db
          .selectFrom('tokens')
          .select('tokens.id')
          .where('tokens.id', 'in', ids)
          .union(db.selectFrom('tokens').innerJoin('family', 'family.id', 'tokens.parent_id').select('tokens.id')),
      )
      .selectFrom('family')
      .select('id')
    const ended = (await family.execute()).map(({ id }) => id)
    if (ended.length === 0) return
    // A parent token has a lower id than the tokens created with it, so this order revokes the
    // parent last.
    const rows = await tokenRows(ctx).where('tokens.id', 'in', ended).orderBy('tokens.id', 'desc').execute()
    for (const row of rows) await revokeOne(ctx, row)
  })

async function revokeOne(ctx: Context, row: Row): Promise<void> {
  await write(
    ctx,
    'user.token.delete',
    { entity: 'tokens', input: {}, id: row.id, before: { ...presentToken(row) } },
    async (ctx) => {
      await ctx.db.deleteFrom('tokens').where('id', '=', row.id).execute()
      return { id: row.id, entity: null }
    },
  )
}
