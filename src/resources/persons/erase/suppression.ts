// Keeps the addresses and the ids of other systems of erased persons out, by keyed hashes: no
// person may have them until an administrator lifts the suppression of the erasure.
import type { Context } from '../../../kernel/context.ts'
import { now } from '../../../kernel/context.ts'
import type { ValidationErrors } from '../../../kernel/errors.ts'
import { queryAsCaller } from '../../../kernel/query/caller-query.ts'
import { addressKey } from '../../../kernel/values/format.ts'
import type { Scope } from './scope.ts'

type Kind = 'email' | 'external_id'

const hashOf = ({ services }: Context, kind: Kind, text: string): string =>
  services.encryption.hmac(`erased:${kind}:${kind === 'email' ? addressKey(text) : text}`)

/** Stores the hashes of an erasure. Returns their number. */
export async function suppressIdentities(
  ctx: Context,
  erasureId: number,
  { addresses, externalIds }: Pick<Scope, 'addresses' | 'externalIds'>,
): Promise<number> {
  const [at, erasure] = [now(ctx), erasureId]
  const rows = [
    ...addresses.map((text) => ({ kind: 'email' as const, hash: hashOf(ctx, 'email', text) })),
    ...externalIds.map((text) => ({ kind: 'external_id' as const, hash: hashOf(ctx, 'external_id', text) })),
  ]
  for (const row of rows)
    await ctx.db
      .insertInto('erased_identities')
      .values({ ...row, person_erasure_id: erasure, created_at: at, updated_at: at })
      .onConflict((conflict) => conflict.columns(['kind', 'hash']).doNothing())
      .execute()
  return rows.length
}

/**
 * Returns whether any person was erased. Most installations have erased none, and the hash of each
 * address of each written person costs more than this query.
 */
const hasErased = async (ctx: Context): Promise<boolean> =>
  (await queryAsCaller(ctx, 'has erased', [], () => ctx.db.selectFrom('erased_identities').select('kind').limit(1)))
    .length > 0

/** Returns those of the texts that belong to an erased person, with the id of the erasure. */
export async function findErased(ctx: Context, kind: Kind, texts: readonly string[]): Promise<Map<string, number>> {
  if (texts.length === 0 || !(await hasErased(ctx))) return new Map()
  const hashes = new Map(texts.map((text) => [hashOf(ctx, kind, text), text]))
  const rows = await ctx.db
    .selectFrom('erased_identities')
    .select(['hash', 'person_erasure_id'])
    .where('kind', '=', kind)
    .where('hash', 'in', [...hashes.keys()])
    .execute()
  return new Map(rows.map((row) => [hashes.get(row.hash) ?? '', row.person_erasure_id]))
}

/** Adds an error for each address and each id of another system that an erased person had. */
export async function checkErased(
  ctx: Context,
  body: {
    emails?: readonly { value: string | null }[] | undefined
    external_ids?: Readonly<Record<string, string | null>> | undefined
  },
  errors: ValidationErrors,
): Promise<void> {
  const emails = (body.emails ?? []).map(({ value }) => value ?? '')
  const found = await findErased(ctx, 'email', emails.filter(Boolean))
  for (const [index, value] of emails.entries()) refuse(ctx, errors, `emails.${index}.value`, found.get(value))
  const ids = Object.entries(body.external_ids ?? {}).flatMap(([source, id]) =>
    id === null ? [] : [[source, `${source}:${id}`] as const],
  )
  const known = await findErased(
    ctx,
    'external_id',
    ids.map(([, text]) => text),
  )
  for (const [source, text] of ids) refuse(ctx, errors, `external_ids.${source}`, known.get(text))
}

function refuse({ origin }: Context, errors: ValidationErrors, field: string, erasure: number | undefined): void {
  if (erasure === undefined) return
  // A visitor of a form does not learn of the erasure.
  if (origin === 'web_form') errors.invalid(field, 'This address cannot be stored.')
  else
    errors.invalid(
      field,
      `It belongs to a person who was erased. To allow it again, lift the suppression of erasure ${erasure}.`,
    )
}
