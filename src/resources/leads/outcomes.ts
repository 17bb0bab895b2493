// The ledger of won and lost leads (lead_outcomes), from which reports read. Rows are only added. A
// row counts in the month of `at`. While that month is open, the ledger follows the lead; after it
// has closed, a change counts in the month of the change. The owner stays the one of the win.
// The ledger also has a row for each stage that a lead left.
import { sql } from 'kysely'
import { dayBoundary } from '../../contract/input/formats.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, hasPermission, now } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { insert } from '../../kernel/query/insert.ts'
import type { Changed } from '../../kernel/resource/definition.ts'
import { daysMs } from '../../kernel/runtime/clock.ts'
import { today } from '../../kernel/values/format.ts'
import { toScaled } from '../../kernel/values/money.ts'
import { emitOnly } from '../../kernel/write/write.ts'
import type { ConfigurationCode } from '../configuration/keys.ts'
import { storedValues } from '../configuration/values.ts'

type Lead = Schema<'Lead'>
type Kind = 'won' | 'lost' | 'passed' | 'dropped'

const kindOfStatus: Record<number, Kind> = { 2: 'won', 3: 'lost' }
const kindOf = (lead: Lead | undefined): Kind | undefined => lead && kindOfStatus[lead.status]

/** Returns the first instant of the first open month, as a stored timestamp. */
async function openSince(ctx: Context): Promise<string> {
  const { timezone } = ctx.services.config
  const code = 'reports.months.close_after_days' satisfies ConfigurationCode
  const days = Number((await storedValues(ctx)).get(code) ?? 0)
  const day = new Date(Date.parse(today(ctx.time, timezone)) - daysMs(days)).toISOString()
  return dayBoundary(`${day.slice(0, 8)}01`, timezone, false)
}

/**
 * Adds an error when a closing time enters or leaves a closed month and the caller may not change
 * the figures of such a month.
 */
export async function checkClosedMonths(
  ctx: Context,
  times: readonly (string | null | undefined)[],
  errors: ValidationErrors,
): Promise<void> {
  if (hasPermission(ctx, 'leads.amend')) return
  const since = await openSince(ctx)
  const closed = times.find((time) => time && time < since)
  if (!closed) return
  const month = today(new Date(closed), ctx.services.config.timezone).slice(0, 7)
  errors.invalid('closed_at', `The month ${month} is closed. Only a role with leads.amend may change it.`)
}

const secondsBetween = (from: string, to: string): number =>
  Math.max(0, Math.floor((Date.parse(to) - Date.parse(from)) / 1000))

/** The columns of an outcome that do not depend on the owner and the time of the booking. */
const outcomeOf = (lead: Lead, kind: Kind, [from, to]: readonly [string, string]) => ({
  lead_id: lead.id,
  kind,
  closed_at: lead.closed_at,
  amount: toScaled(lead.lead_value),
  seconds: secondsBetween(from, to),
  person_id: lead.person_id,
  lead_source_id: lead.lead_source_id,
  lead_type_id: lead.lead_type_id,
  lead_pipeline_id: lead.lead_pipeline_id,
  lead_pipeline_stage_id: lead.lead_pipeline_stage_id,
  lost_reason: lead.lost_reason,
  source_name: lead.source.name,
  type_name: lead.type.name,
  pipeline_name: lead.pipeline.name,
  stage_name: lead.stage.name,
})

/** The columns whose change makes another outcome. Names and seconds follow from others. */
const compared = [
  'kind',
  'closed_at',
  'amount',
  'person_id',
  'lead_source_id',
  'lead_type_id',
  'lead_pipeline_id',
  'lost_reason',
] as const

type Line = Record<'name' | 'sku', string> & { product_id: number | null; amount: number; quantity: number }

const linesOf = ({ products }: Lead): Line[] =>
  products.map(({ product_id, name, sku, amount, quantity }) => ({
    product_id,
    name,
    sku,
    amount: toScaled(amount),
    quantity: toScaled(quantity),
  }))

const lastRow = ({ db }: Context, lead: number) =>
  db
    .selectFrom('lead_outcomes')
    .selectAll()
    .where('lead_id', '=', lead)
    .where('kind', 'in', ['won', 'lost'])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

type Row = NonNullable<Awaited<ReturnType<typeof lastRow>>>

const storedLines = ({ db }: Context, outcome: number): Promise<Line[]> =>
  db
    .selectFrom('lead_outcome_products')
    .select(['product_id', 'name', 'sku', 'amount', 'quantity'])
    .where('outcome_id', '=', outcome)
    .orderBy('id')
    .execute()

// Without the id, which a lead loses with its product.
const textOf = (lines: readonly Line[]): string =>
  JSON.stringify(lines.map(({ name, sku, amount, quantity }) => [name, sku, amount, quantity]))

/** Books what a change of a lead means for the reports. Must run in its transaction. */
export async function bookChange(ctx: Context, id: number, change: Changed<Lead>): Promise<void> {
  const { before, after, isRestored } = change
  if (before && after) await bookStage(ctx, before, after)
  const kind = kindOf(after)
  if (kindOf(before) === undefined && kind === undefined) return
  const last = await lastRow(ctx, id)
  const standing = last?.sign === 1 ? last : undefined
  const wanted = after && kind && outcomeOf(after, kind, [after.created_at, after.closed_at ?? now(ctx)])
  const lines = after ? linesOf(after) : []
  if (standing && wanted && compared.every((column) => standing[column] === wanted[column]))
    if (textOf(await storedLines(ctx, standing.id)) === textOf(lines)) return
  const since = await openSince(ctx)
  // Only a caller with the permission leads.amend can set a time in a closed month.
  const isSet = !isRestored && after?.closed_at !== before?.closed_at
  const isSame = standing?.kind === kind
  const at = (time: string, isAmended: boolean): string => (time >= since || isAmended ? time : now(ctx))
  const times: string[] = []
  if (standing) times.push(await takeBack(ctx, standing, at(standing.at, isSame && isSet)))
  if (wanted) {
    const owner = isSame ? standing : isRestored ? last : undefined
    times.push(at(wanted.closed_at ?? now(ctx), isSet))
    await book(ctx, { ...wanted, at: times.at(-1) as string }, after, { owner, lines })
  }
  if (after && times.some((time) => time < since))
    await emitOnly(ctx, 'lead.amended', {
      entity: 'leads',
      id,
      ...(before && { before }),
      shown: after,
      changed: ['closed_at'],
    })
}

/** Books the stage that an open lead has left. */
async function bookStage(ctx: Context, before: Lead, after: Lead): Promise<void> {
  if (kindOf(before) !== undefined || before.lead_pipeline_stage_id === after.lead_pipeline_stage_id) return
  const kind = kindOf(after) === 'lost' ? 'dropped' : 'passed'
  const left = outcomeOf(before, kind, [before.stage_changed_at, now(ctx)])
  await book(ctx, { ...left, at: now(ctx) }, before, { owner: undefined, lines: [] })
}

/** Adds the row that takes `row` back. Returns `at`. */
async function takeBack(ctx: Context, row: Row, at: string): Promise<string> {
  const { id, ...kept } = row
  const { amount, seconds } = row
  await insert(ctx, 'lead_outcomes', { ...kept, sign: -1, reverses_id: id, at, amount: -amount, seconds: -seconds })
  return at
}

/**
 * Adds a row for the owner of the lead with their groups, or for the owner and groups of an earlier
 * row of the lead.
 */
async function book(
  ctx: Context,
  row: ReturnType<typeof outcomeOf> & { at: string },
  lead: Lead,
  { owner, lines }: { owner: Row | undefined; lines: readonly Line[] },
): Promise<void> {
  const { user_id, user_name } = owner ?? { user_id: lead.user_id, user_name: lead.user?.name ?? null }
  const outcome_id = await insert(ctx, 'lead_outcomes', { ...row, user_id, user_name, sign: 1 })
  if (user_id !== null) {
    const groups = owner
      ? sql`select group_id, name from lead_outcome_groups where outcome_id = ${owner.reverses_id ?? owner.id}`
      : sql`select groups.id, groups.name from user_groups join groups on groups.id = user_groups.group_id
          where user_groups.user_id = ${user_id}`
    await sql`insert into lead_outcome_groups (outcome_id, group_id, name)
      select cast(${outcome_id} as bigint), own.* from (${groups}) as own`.execute(ctx.db)
  }
  for (const line of lines) await insert(ctx, 'lead_outcome_products', { outcome_id, ...line })
}
