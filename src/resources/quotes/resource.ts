// Quotes: offers to persons. items.ts has the items of a quote, totals.ts its totals, status.ts
// its status and the values that it freezes, lead-links.ts its links to leads, and documents.ts
// its PDF.
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import {
  flagConditionField,
  linkedField,
  moneyField,
  textField,
  timeField,
  valueField,
} from '../../kernel/query/filter.ts'
import { idsInSight, visible, withoutVisibility } from '../../kernel/query/visibility.ts'
import { defineResource, type RowPlan, type Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { mergeAddress, readAddress } from '../../kernel/values/address.ts'
import { fromScaled, isAmount, toScaled } from '../../kernel/values/money.ts'
import { textKey } from '../../kernel/values/names.ts'
import { withAttributes } from '../attributes/with-attributes.ts'
import { leads } from '../leads/resource.ts'
import { personRef } from '../persons/contacts.ts'
import { persons } from '../persons/resource.ts'
import { warnOfStock } from '../products/stock-warnings.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { resolveOwnerId, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { organizationOf, storeDocument } from './documents.ts'
import { loadItems, type PlannedItem, planItems, presentItem, saveItems } from './items.ts'
import { isLinked, linkLead, loadLeadRefs } from './lead-links.ts'
import { searchDocument } from './search-document.ts'
import {
  checkFrozenColumns,
  checkFrozenTotals,
  checkStatus,
  type QuoteState,
  sentColumns,
  statusEvents,
  todayOf,
} from './status.ts'
import { type QuoteRules, quoteRules, quoteTotals, taxesByRate } from './totals.ts'

/** The body of a change, with what only this program may change. */
export type QuoteBody = Schema<'QuoteUpdate'> & {
  /** The quote that a new quote revises. */
  revises?: { id: number; revision: number; leadIds: readonly number[] }
  revised_by_id?: number
}

interface Row extends QuoteState {
  id: number
  subject: string
  description: string | null
  person_id: number
  user_id: number | null
  billing_address: string
  shipping_address: string | null
  discount_percent: number
  adjustment_amount: number
  taxes: string | null
}

/**
 * Returns the owner to store. Null is an error, because every quote needs an owner. Null is
 * accepted only if the stored owner is null, which means that the owner's account was deleted.
 */
async function ownerColumn(writing: Writing<Row>, sent: number | null | undefined): Promise<number | null | undefined> {
  if (sent !== null) return resolveOwnerId(writing, sent)
  if (writing.current?.user_id !== null) writing.errors.invalid('user_id', 'The field must not be null.')
  return undefined
}

/**
 * Returns the address columns. Adds an error unless the billing address is complete. The shipping
 * address may be incomplete or missing.
 */
function addresses({ billing_address, shipping_address }: QuoteBody, { current, errors }: Writing<Row>) {
  const billing = mergeAddress(current?.billing_address ?? null, billing_address)
  if (billing === null) errors.invalid('billing_address', 'The field is required.')
  const merged = readAddress(billing ?? null)
  for (const part of ['address', 'city', 'country', 'postcode'] as const)
    if (merged && merged[part] === null) errors.invalid(`billing_address.${part}`, 'The field is required.')
  return {
    billing_address: billing,
    shipping_address: mergeAddress(current?.shipping_address ?? null, shipping_address),
  }
}

/** Whether the totals of the quote and of its items follow from something in the body. */
const changesTotals = ({ items, discount_percent, adjustment_amount }: QuoteBody): boolean =>
  items !== undefined || discount_percent !== undefined || adjustment_amount !== undefined

/**
 * Plans the items, and the columns of discount, adjustment and totals. Plans nothing when an update
 * contains no items, discount or adjustment.
 */
async function planTotals(body: QuoteBody, writing: Writing<Row>): Promise<RowPlan> {
  const { ctx, current, errors } = writing
  const { items, discount_percent: percent, adjustment_amount: adjusted, status } = body
  const isSending = status === 'sent' && (current?.status ?? 'draft') === 'draft'
  if (current && !changesTotals(body) && !isSending) return { columns: {} }
  const before = errors.size
  const discountPercent = percent === undefined ? (current?.discount_percent ?? 0) : toScaled(percent)
  const rules = quoteRules(ctx.services.config, discountPercent)
  const present = current ? await loadItems(ctx, [current.id]) : []
  if (current && current.status !== 'draft') {
    checkFrozenTotals({ ...writing, current }, body, present)
    return { columns: {} }
  }
  if (isSending && (items ?? present).length === 0 && !errors.isRefused('items'))
    errors.invalid('items', 'A quote needs an item before it is sent.')
  if (current && !changesTotals(body))
    return { columns: { taxes: current.taxes ?? JSON.stringify(taxesOf(present, rules)) } }
  // Without `items`, the stored items stay, and their totals are computed anew.
  const planned = await planItems(ctx, present, items ?? present.map(({ id }) => ({ id })), rules, errors)
  if (items) await warnOfStock(ctx, planned, (index) => `items.${index}.quantity`)
  const lines = planned.map(({ total, discount_amount, tax_amount }) => ({
    total: BigInt(total),
    discount_amount: BigInt(discount_amount),
    tax_amount: BigInt(tax_amount),
  }))
  const sent = adjusted === undefined ? (current?.adjustment_amount ?? 0) : toScaled(adjusted)
  const totals = quoteTotals(lines, BigInt(sent), rules)
  // The totals are not checked when items, discount or adjustment have errors.
  const isRefused = (['items', 'discount_percent', 'adjustment_amount'] as const).some((each) => errors.isRefused(each))
  if (!isRefused && errors.size === before) checkTotals(totals, errors)
  return {
    columns: {
      discount_percent: discountPercent,
      adjustment_amount: Number(totals.adjustment_amount),
      discount_amount: Number(totals.discount_amount),
      tax_amount: Number(totals.tax_amount),
      subtotal: Number(totals.subtotal),
      grand_total: Number(totals.grand_total),
      taxes: JSON.stringify(taxesOf(planned, rules)),
    },
    save: (ctx, id) => saveItems(ctx, id, present, planned),
  }
}

type TaxedItem = Pick<PlannedItem, 'total' | 'discount_amount' | 'tax_amount' | 'tax_percent'>

const taxesOf = (items: readonly TaxedItem[], rules: QuoteRules): Schema<'QuoteTax'>[] =>
  taxesByRate(
    items.map(({ total, discount_amount, tax_amount, tax_percent }) => ({
      total: BigInt(total),
      discount_amount: BigInt(discount_amount),
      tax_amount: BigInt(tax_amount),
      tax_percent: BigInt(tax_percent),
    })),
    rules,
  ).map(({ percent, taxable, tax }) => ({
    tax_percent: percent === null ? null : fromScaled(Number(percent)),
    taxable_amount: fromScaled(Number(taxable)),
    tax_amount: fromScaled(Number(tax)),
  }))

function checkTotals(totals: ReturnType<typeof quoteTotals>, errors: ValidationErrors): void {
  const { subtotal, tax_amount, adjustment_amount, grand_total } = totals
  if (![subtotal, tax_amount, grand_total - adjustment_amount].every(isAmount))
    errors.invalid('items', 'The total of the items exceeds the largest amount.')
  else if (grand_total < 0n) errors.invalid('adjustment_amount', 'The total of the quote must not be negative.')
  else if (!isAmount(grand_total))
    errors.invalid('adjustment_amount', 'The total of the quote exceeds the largest amount.')
}

/** Gives a quote that was just saved its number and its document. */
async function send(ctx: Context, id: number, personId: number): Promise<void> {
  const { name: person } = await ctx.db
    .selectFrom('persons')
    .select('name')
    .where('id', '=', personId)
    .executeTakeFirstOrThrow()
  const columns = await sentColumns(ctx, { person, organization: await organizationOf(ctx, personId) })
  await ctx.db.updateTable('quotes').set(columns).where('id', '=', id).execute()
  await storeDocument(ctx, await quotes.get(withoutVisibility(ctx), id))
}

async function planQuote(body: QuoteBody, writing: Writing<Row>): Promise<RowPlan> {
  const { ctx, current, errors } = writing
  const { subject, person_id, expiry_date, lead_id, status, revises } = body
  const totals = await planTotals(body, writing)
  await checkStatus(writing, body)
  const isSold = (status === 'sent' || status === 'accepted') && status !== current?.status
  if (isSold && current && !body.items) await warnOfStock(ctx, await loadItems(ctx, [current.id]), () => 'status')
  if (!revises && expiry_date && expiry_date !== current?.expiry_date && expiry_date < todayOf(ctx))
    errors.invalid('expiry_date', 'Must be today or later.')
  if (person_id !== current?.person_id) await checkReference(writing, 'person_id', person_id, persons)
  const isKnown = current && lead_id && (await isLinked(ctx, { leadId: lead_id, quoteId: current.id }))
  if (!isKnown) await checkReference(writing, 'lead_id', lead_id, leads)
  await checkTagIds(ctx, errors, body.tag_ids)
  const columns = {
    subject,
    subject_key: subject === undefined ? undefined : textKey(subject),
    description: body.description,
    person_id,
    user_id: await ownerColumn(writing, body.user_id),
    ...addresses(body, writing),
    expiry_date,
    status,
    ...(revises && { revises_id: revises.id, revision: revises.revision + 1 }),
    revised_by_id: body.revised_by_id,
    ...totals.columns,
  }
  if (current && current.status !== 'draft') checkFrozenColumns(writing, columns)
  if (status !== 'sent' || (current && current.status !== 'draft')) return { ...totals, columns }
  const save = async (ctx: Context, id: number): Promise<void> => {
    await totals.save?.(ctx, id)
    await send(ctx, id, person_id ?? current?.person_id ?? 0)
  }
  return { columns, save }
}

export const quotes = defineResource(
  withAttributes('quotes', {
    noun: 'quote',
    table: 'quotes',
    externalIds: { table: 'quote_external_ids', column: 'quote_id' },
    operations: {
      list: 'listQuotes',
      get: 'getQuote',
      create: 'createQuote',
      update: 'updateQuote',
      delete: 'deleteQuote',
    },
    rows: (ctx, db) =>
      db
        .selectFrom('quotes')
        // The join is a left join so that SQLite reads the table quotes first in every query plan.
        // The person always exists.
        .leftJoin('persons', 'persons.id', 'quotes.person_id')
        .leftJoin('users', 'users.id', 'quotes.user_id')
        .selectAll('quotes')
        .select(tagsIn(ctx, db, 'quotes'))
        .select(['persons.name as person_name', 'persons.emails as person_emails'])
        .$narrowType<{ person_name: string; person_emails: string }>()
        .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
        .where(visible(ctx, 'quotes.user_id')),
    idsInSight: (caller) => idsInSight(caller, 'quotes'),
    sort: {
      id: 'quotes.id',
      number: 'quotes.number_key',
      status: 'quotes.status',
      sent_at: 'quotes.sent_at',
      subject: 'quotes.subject_key',
      subtotal: 'quotes.subtotal',
      discount_amount: 'quotes.discount_amount',
      tax_amount: 'quotes.tax_amount',
      grand_total: 'quotes.grand_total',
      expiry_date: 'quotes.expiry_date',
      created_at: 'quotes.created_at',
      updated_at: 'quotes.updated_at',
    },
    filter: {
      number: textField('quotes.number_key'),
      status: valueField('quotes.status'),
      revises_id: valueField('quotes.revises_id'),
      revised_by_id: valueField('quotes.revised_by_id'),
      sent_at: timeField('quotes.sent_at'),
      subject: textField('quotes.subject_key'),
      user_id: valueField('quotes.user_id'),
      person_id: valueField('quotes.person_id'),
      lead_id: linkedField('lead_quotes', 'quotes.id', 'quote_id', 'lead_id'),
      product_id: linkedField('quote_items', 'quotes.id', 'quote_id', 'product_id'),
      is_expired: (ctx) =>
        flagConditionField((wanted) =>
          wanted
            ? sql<SqlBool>`quotes.expiry_date < ${todayOf(ctx)}`
            : sql<SqlBool>`quotes.expiry_date >= ${todayOf(ctx)}`,
        ),
      tag_id: linkedField('quote_tags', 'quotes.id', 'quote_id', 'tag_id'),
      subtotal: moneyField('quotes.subtotal'),
      discount_amount: moneyField('quotes.discount_amount'),
      tax_amount: moneyField('quotes.tax_amount'),
      grand_total: moneyField('quotes.grand_total'),
      expiry_date: valueField('quotes.expiry_date'),
    },
    related: {
      person: { entity: 'persons', column: 'quotes.person_id' },
      lead: {
        entity: 'leads',
        column: 'quotes.id',
        link: { table: 'lead_quotes', owner: 'quote_id', related: 'lead_id' },
      },
    },
    searchDocument,
    search: [
      { indexed: 'quotes' },
      { key: 'quotes.number_key' },
      { key: 'quotes.subject_key' },
      { text: 'quotes.description' },
      { key: 'persons.name_key' },
    ],
    withoutColumn: { items: 'rows', lead_id: 'links', tag_ids: 'links' },
    toRow: planQuote,
    toReply: (row, ctx): Schema<'Quote'> => ({
      id: row.id,
      number: row.number,
      status: row.status as Schema<'QuoteStatus'>,
      revision: row.revision,
      revises_id: row.revises_id,
      revised_by_id: row.revised_by_id,
      sent_at: row.sent_at,
      customer: row.customer === null ? null : (JSON.parse(row.customer) as Schema<'QuoteCustomer'>),
      subject: row.subject,
      description: row.description,
      person_id: row.person_id,
      person: personRef(row.person_id, row.person_name, row.person_emails),
      user_id: row.user_id,
      user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
      billing_address: readAddress(row.billing_address) as Schema<'Address'>,
      shipping_address: readAddress(row.shipping_address),
      expiry_date: row.expiry_date,
      is_expired: row.expiry_date < todayOf(ctx),
      discount_percent: fromScaled(row.discount_percent),
      adjustment_amount: fromScaled(row.adjustment_amount),
      discount_amount: fromScaled(row.discount_amount),
      tax_amount: fromScaled(row.tax_amount),
      taxes: row.taxes === null ? [] : (JSON.parse(row.taxes) as Schema<'QuoteTax'>[]),
      subtotal: fromScaled(row.subtotal),
      grand_total: fromScaled(row.grand_total),
      items: [],
      leads: [],
      tags: readTags(row.tags),
      custom_attributes: {},
      external_ids: {},
      created_at: row.created_at,
      updated_at: row.updated_at,
      version: row.version,
    }),
    loadRelated: async (ctx, replies, include) => {
      const items = await loadItems(
        ctx,
        replies.map(({ id }) => id),
      )
      for (const reply of replies) {
        const own = items.filter(({ quote_id }) => quote_id === reply.id)
        reply.items = own.map(presentItem)
        // A quote of an earlier version has stored no taxes.
        if (reply.taxes.length === 0)
          reply.taxes = taxesOf(own, quoteRules(ctx.services.config, toScaled(reply.discount_percent)))
      }
      await loadLeadRefs(ctx, replies)
      await expandReferences(ctx, replies, include, { user: () => users, person: () => persons, leads: () => leads })
    },
    followUpEvents: statusEvents,
    saveLinks: async (ctx, id, { tag_ids, lead_id, revises }: QuoteBody, isNew) => {
      await setTags(ctx, 'quotes', id, tag_ids, isNew)
      for (const leadId of revises?.leadIds ?? [lead_id ?? []].flat()) await linkLead(ctx, { leadId, quoteId: id })
    },
  }),
)
