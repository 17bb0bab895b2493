// The status of a quote: which status may follow which, what a sent quote freezes, and the events
// of a change. A quote gets its number and its document when it is sent, in the same transaction,
// so a transaction that fails leaves no gap in the numbers.
import { sql } from 'kysely'
import type { EventBase, Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { today } from '../../kernel/values/format.ts'
import { toScaled } from '../../kernel/values/money.ts'
import { textKey } from '../../kernel/values/names.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { quoteNumberFormat } from '../configuration/company.ts'
import { type Item, isSameItems } from './items.ts'

type Status = Schema<'QuoteStatus'>

export interface QuoteState {
  status: Status
  expiry_date: string
  revised_by_id: number | null
}

const next: Record<Status, readonly Status[]> = {
  draft: ['sent'],
  sent: ['accepted', 'declined', 'expired'],
  expired: ['accepted', 'declined'],
  declined: ['accepted'],
  accepted: [],
}

export const todayOf = ({ time, services }: Context): string => today(time, services.config.timezone)

/** Adds an error when the quote may not change to the status that the body names. */
export async function checkStatus(
  { ctx, current, errors }: Writing<QuoteState>,
  { status, expiry_date: sent }: Schema<'QuoteUpdate'>,
): Promise<void> {
  const from = current?.status ?? 'draft'
  if (status === undefined || status === from) return
  const expiry = sent ?? current?.expiry_date
  if (!next[from].includes(status)) errors.invalid('status', `A quote that is ${from} cannot become ${status}.`)
  else if (status === 'sent' && expiry !== undefined && expiry < todayOf(ctx) && !errors.isRefused('expiry_date'))
    errors.invalid('expiry_date', 'Must be today or later when the quote is sent.')
  else if (status === 'expired' && expiry !== undefined && expiry >= todayOf(ctx))
    errors.invalid('status', 'The last day of validity has not passed.')
  else if (status === 'accepted' && current && (await isReplaced(ctx, current)))
    errors.invalid('status', `The quote ${current.revised_by_id} revises this one and was sent.`)
}

/** Returns whether the next revision of the quote was sent. */
async function isReplaced({ db }: Context, { revised_by_id: id }: QuoteState): Promise<boolean> {
  if (id === null) return false
  const row = await db.selectFrom('quotes').select('status').where('id', '=', id).executeTakeFirst()
  return row !== undefined && row.status !== 'draft'
}

const frozenColumns = [
  'subject',
  'description',
  'person_id',
  'billing_address',
  'shipping_address',
  'expiry_date',
] as const
type FrozenColumn = (typeof frozenColumns)[number]
const frozen = 'A quote that was sent keeps this value; revise the quote.'

/** Adds an error for each planned column that differs from the document of the customer. */
export function checkFrozenColumns(
  { current, errors }: Writing<Record<FrozenColumn, unknown>>,
  columns: Partial<Record<FrozenColumn, unknown>>,
): void {
  for (const field of frozenColumns)
    if (columns[field] !== undefined && columns[field] !== current?.[field]) errors.invalid(field, frozen)
}

/** Adds an error when items, discount or adjustment differ from the document of the customer. */
export function checkFrozenTotals(
  { current, errors }: Writing<Record<'discount_percent' | 'adjustment_amount', number>>,
  body: Schema<'QuoteUpdate'>,
  present: readonly Item[],
): void {
  for (const field of ['discount_percent', 'adjustment_amount'] as const)
    if (body[field] !== undefined && toScaled(body[field]) !== current?.[field]) errors.invalid(field, frozen)
  if (body.items && !isSameItems(present, body.items)) errors.invalid('items', frozen)
}

/** Returns the event of a change of status, such as `quote.sent`. */
export function statusEvents(before: Snapshot | undefined, after: Snapshot): EventBase[] {
  const status = after.status as Status
  return status === (before?.status ?? 'draft') || status === 'draft' ? [] : [`quote.${status}`]
}

/**
 * Returns the columns of a quote that is being sent. The row of the year is locked until the
 * transaction ends. The year is that of the installation's time zone.
 */
export async function sentColumns(ctx: Context, customer: Schema<'QuoteCustomer'>) {
  const year = todayOf(ctx).slice(0, 4)
  const { last } = await ctx.db
    .insertInto('quote_numbers')
    .values({ year: Number(year), last: 1 })
    .onConflict((conflict) => conflict.column('year').doUpdateSet({ last: sql`quote_numbers.last + 1` }))
    .returning('last')
    .executeTakeFirstOrThrow()
  const format = await quoteNumberFormat(ctx)
  const number = format
    .replace('{year}', year)
    .replace(/\{number(?::(\d))?\}/, (_all, width) => String(last).padStart(Number(width ?? 1), '0'))
  return { number, number_key: textKey(number), sent_at: now(ctx), customer: JSON.stringify(customer) }
}
