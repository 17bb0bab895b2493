// The layout of a printed quote as a pdfmake document, with labels in the language of the customer.
// All texts pass through the `Typesetter` (typeset.ts), which chooses fonts with the needed glyphs.
// The functions read and write no files.
import type { Content, ContentTable, TableCell, TDocumentDefinitions } from 'pdfmake/interfaces.js'
import type { Config } from '../../config/config.ts'
import type { Schema } from '../../contract/types.ts'
import { toScaled, totalOf } from '../../kernel/values/money.ts'
import { countryName } from '../../texts/countries.ts'
import { type Messages, type TextKey, type Texts, textsIn } from '../../texts/texts.ts'
import type { Company } from '../configuration/company.ts'
import type { Typesetter } from './typeset.ts'

type Quote = Schema<'Quote'>
type Settings = Pick<Config, 'appName' | 'locale' | 'currency'>

export interface PrintedQuote {
  quote: Quote
  /** The day on which the quote was sent, or a draft was created, YYYY-MM-DD. */
  date: string
  seller: Company
  /** The name of the customer's organization. Null when the person belongs to no organization. */
  organization: string | null
  /** The number of the quote that this one revises. */
  replaces: string | null
  /** `locale` is that of the customer. */
  config: Settings
}

/** The input of the drawing subprocess: the quote, and the texts of its language. */
export type TranslatedQuote = PrintedQuote & { language: string; messages: Messages }

const ink = '#1f2937'
const pale = '#6b7280'
const rule = '#d1d5db'

/**
 * The regions of a locale for which a quote is printed in Letter format. Quotes for all other
 * regions use A4.
 */
const letterRegions = new Set(['US', 'CA', 'MX', 'PH', 'CL', 'CO', 'CR', 'GT', 'NI', 'PA', 'PR', 'SV', 'VE', 'DO'])

export function quoteDocument(printed: TranslatedQuote, type: Typesetter): TDocumentDefinitions {
  const { quote, config, seller } = printed
  const write = writers(config, type, textsIn({ ...printed, locale: config.locale }))
  const title = write.say('quote.title', { number: quote.number ?? String(quote.id) })
  const foot = type.set(`${seller.name} · ${title}`)
  return {
    info: { title: `${title}: ${quote.subject}`, author: seller.name, creationDate: new Date(quote.updated_at) },
    pageSize: letterRegions.has(new Intl.Locale(config.locale).maximize().region ?? '') ? 'LETTER' : 'A4',
    pageMargins: [48, 48, 48, 64],
    defaultStyle: { font: 'Roboto', fontSize: 9.5, color: ink, lineHeight: 1.2 },
    styles: {
      label: { fontSize: 7.5, color: pale, bold: true, characterSpacing: 0.4, margin: [0, 0, 0, 3] },
      small: { fontSize: 8, color: pale },
    },
    footer: (page: number, pages: number): Content => ({
      margin: [48, 20, 48, 0],
      style: 'small',
      columns: [
        { ...structuredClone(foot), alignment: 'left', width: '*' },
        { ...type.set(write.say('quote.page', { page, pages })), width: 'auto' },
      ],
    }),
    content: [
      {
        columns: [
          { ...sellerBlock(seller, type, write), width: '*' },
          { ...heading(printed, title, type, write), width: '*' },
        ],
        columnGap: 16,
      },
      { ...type.setBold(quote.subject, 40), fontSize: 18, margin: [0, 22, 0, 16] },
      facts(printed, type, write),
      items(quote, type, write),
      totals(quote, write),
      ...terms(printed, type, write),
    ],
  }
}

/** Returns the title, with the quote that this one replaces. */
function heading({ quote, replaces }: PrintedQuote, title: string, type: Typesetter, { say }: Writers) {
  const { revision } = quote
  const note = replaces === null ? [] : [say('quote.revision', { revision, number: replaces })]
  return {
    stack: [
      { ...type.set(title, 30), fontSize: 15, color: pale },
      ...note.map((line) => ({ ...type.set(line, 40), style: 'small' })),
    ].map((line) => ({ ...line, alignment: 'right' as const })),
  }
}

function sellerBlock({ name, address, taxId, logo }: Company, type: Typesetter, { say }: Writers) {
  const image = logo && `data:image/${logo[0] === 0x89 ? 'png' : 'jpeg'};base64,${Buffer.from(logo).toString('base64')}`
  const about = [...address.split('\n'), taxId.trim() === '' ? '' : say('quote.tax_id', { id: taxId })]
  const stack: Content[] = [
    ...(image === null ? [] : [{ image, fit: [180, 60] as [number, number], margin: [0, 0, 0, 8] as Margin }]),
    { ...type.setBold(name, 30), ...atLeft, fontSize: 15 },
    ...about.filter((line) => line.trim() !== '').map((line) => ({ ...type.set(line, 60), ...atLeft, style: 'small' })),
  ]
  return { stack }
}

/** Left-aligns text below a label, even right-to-left text, which the typesetter aligns right. */
const atLeft = { alignment: 'left' } as const

type Margin = [number, number, number, number]

/**
 * Returns the description of the quote and the terms of the seller, or nothing when both are empty.
 */
function terms({ quote, seller }: PrintedQuote, type: Typesetter, { label }: Writers): Content[] {
  const own = [quote.description ?? '', seller.terms ?? ''].map((text) => text.trim())
  const texts = own.filter((text) => text !== '')
  if (texts.length === 0) return []
  return [
    { ...label('quote.terms'), margin: [0, 22, 0, 3] },
    ...texts
      .join('\n\n')
      .split('\n')
      .flatMap((line): Content[] =>
        line.trim() === '' ? [{ text: ' ' }] : partsOf(line).map((part) => type.set(part, 90)),
      ),
  ]
}

/**
 * Splits a paragraph into parts of at most 1500 characters, because the layout time of pdfmake
 * grows with the square of the length of a paragraph.
 */
const partsOf = (paragraph: string): string[] => paragraph.match(/.{1,1500}(?:\s|$)|.{1,1500}/gsu) ?? []

function facts({ quote, date, organization }: PrintedQuote, type: Typesetter, write: Writers): Content {
  const block = (key: TextKey, lines: readonly string[]): Content => ({
    stack: [write.label(key), ...lines.map((line) => ({ ...type.set(line, 22), ...atLeft }))],
  })
  const { person, user, billing_address: billing, shipping_address: shipping } = quote
  const customer = [...(organization === null ? [] : [organization]), person.name]
  const postal = (address: Schema<'Address'>): string[] => postalLines(address, write)
  return {
    columns: [
      block('quote.bill_to', [...customer, ...postal(billing)]),
      block('quote.ship_to', shipping ? [...customer, ...postal(shipping)] : [write.say('quote.same_as_billing')]),
      block('quote.contact', user ? [user.name, user.email] : ['—']),
      {
        stack: [
          block('quote.date', [write.day(date)]),
          { ...box(block('quote.valid_until', [write.day(quote.expiry_date)])), margin: [0, 8, 0, 0] },
        ],
        width: 88,
      },
    ],
    columnGap: 14,
    margin: [0, 0, 0, 22],
  }
}

const box = (content: Content) => ({ stack: [content] })

function postalLines({ address, postcode, city, state, country }: Schema<'Address'>, write: Writers): string[] {
  const place = [[postcode, city].filter(Boolean).join(' '), state].filter(Boolean).join(', ')
  return [...(address ?? '').split('\n'), place, country ? write.country(country) : ''].filter(
    (line) => line.trim() !== '',
  )
}

/** Returns the table of the items. A column in which every cell would be empty is left out. */
function items({ items }: Quote, type: Typesetter, write: Writers): Content {
  const right = (text: string, below = ''): TableCell => ({
    stack: [type.set(text), ...(below === '' ? [] : [{ ...type.set(below), style: 'small' }])].map((each) => ({
      ...each,
      alignment: 'right' as const,
    })),
    noWrap: true,
  })
  const part = (amount: number, percent: number): TableCell =>
    right(amount === 0 ? '—' : write.money(amount), percent === 0 ? '' : write.percent(percent))
  const hasDiscount = items.some((item) => item.discount_amount !== 0 || item.discount_percent !== 0)
  const hasTax = items.some((item) => item.tax_amount !== 0 || item.tax_percent !== 0)
  const columns: [name: ItemColumn, cellOf: (item: Quote['items'][number]) => TableCell][] = [
    [
      'item',
      ({ name, sku }) => ({
        stack: [type.set(name, 18), ...(sku === '' ? [] : [{ ...type.set(sku, 20), style: 'small' }])],
      }),
    ],
    ['quantity', ({ quantity }) => right(write.number(quantity))],
    ['price', ({ price }) => right(write.price(price))],
  ]
  if (hasDiscount) columns.push(['discount', (item) => part(-item.discount_amount, item.discount_percent)])
  if (hasTax) columns.push(['tax', (item) => part(item.tax_amount, item.tax_percent)])
  columns.push(['amount', ({ total }) => right(write.money(total))])
  const head = columns.map(
    ([name], column): TableCell => ({
      ...write.label(`quote.${name}`),
      margin: 0,
      alignment: column === 0 ? 'left' : 'right',
    }),
  )
  const rows = items.map((item) => columns.map(([, cellOf]) => cellOf(item)))
  const none: TableCell[] = columns.map((_, column) =>
    column === 0 ? { ...type.set(write.say('quote.no_items')), colSpan: columns.length, style: 'small' } : '',
  )
  // Amounts do not wrap, so a table with very long amounts gets a smaller font.
  const longest = Math.max(
    0,
    ...items.flatMap(({ price, total }) => [write.price(price).length, write.money(total).length]),
  )
  return {
    fontSize: longest > 16 ? 7 : 9.5,
    table: {
      headerRows: 1,
      dontBreakRows: true,
      widths: columns.map((_, column) => (column === 0 ? '*' : 'auto')),
      body: [head, ...(rows.length > 0 ? rows : [none])],
    },
    layout: lines((row, count) => (row === 0 ? 0 : row === 1 || row === count ? 0.8 : 0.4)),
  }
}

type ItemColumn = 'item' | 'quantity' | 'price' | 'discount' | 'tax' | 'amount'

function totals(quote: Quote, write: Writers): Content {
  const { adjustment_amount: adjustment } = quote
  const row = (label: string, amount: number, isLast = false): TableCell[] => {
    const set = isLast ? write.setBold : write.set
    return [
      { ...set(label), color: isLast ? ink : pale, noWrap: true },
      { ...set(write.money(amount)), alignment: 'right' as const, noWrap: true },
    ].map((cell) => (isLast ? { ...cell, fontSize: 12 } : cell))
  }
  const { say } = write
  const body = [
    row(say('quote.subtotal'), quote.subtotal),
    ...discountRows(quote, write).map(([label, amount]) => row(label, amount)),
    ...taxRows(quote, write).map(([label, amount]) => row(label, amount)),
    ...(adjustment === 0 ? [] : [row(say('quote.adjustment'), adjustment)]),
    row(say('quote.total'), quote.grand_total, true),
  ]
  return {
    unbreakable: true,
    margin: [0, 12, 0, 0],
    columns: [
      { text: '', width: '*' },
      {
        width: 'auto',
        table: { widths: ['auto', 'auto'], body },
        layout: lines((row, count) => (row === count - 1 ? 0.8 : 0)),
      },
    ],
  }
}

/**
 * Returns the labels and amounts of the discount on items and of the one on the whole quote, which
 * has the rest, so that the rows add up.
 */
function discountRows({ items, discount_percent: percent, discount_amount: all }: Quote, write: Writers) {
  const onItems = items.map((item) => toScaled(item.discount_amount))
  const rest = totalOf([toScaled(all), ...onItems.map((each) => -each)])
  const label = percent === 0 ? 'quote.discount' : 'quote.item_discount'
  const whole = write.say('quote.total_discount', { percent: write.percent(percent) })
  const rows: [label: string, amount: number][] = [
    [write.say(label), -totalOf(onItems)],
    [whole, -rest],
  ]
  return rows.filter(([, amount]) => amount !== 0)
}

/** Returns the label and the amount of the tax of each rate. */
function taxRows({ taxes, tax_amount }: Quote, write: Writers): [label: string, amount: number][] {
  if (tax_amount === 0 && taxes.length < 2) return [[write.say('quote.tax'), 0]]
  return taxes.map(({ tax_percent: percent, taxable_amount, tax_amount }) => [
    percent === null
      ? write.say('quote.tax')
      : write.say('quote.tax_rate', { percent: write.percent(percent), amount: write.money(taxable_amount) }),
    tax_amount,
  ])
}

const lines = (width: (row: number, count: number) => number): NonNullable<ContentTable['layout']> => ({
  hLineWidth: (row, { table }) => width(row, table.body.length),
  vLineWidth: () => 0,
  hLineColor: () => rule,
  paddingLeft: (column) => (column === 0 ? 0 : 8),
  paddingRight: () => 0,
  paddingTop: () => 5,
  paddingBottom: () => 5,
})

type Writers = ReturnType<typeof writers>

/**
 * Returns functions that write labels, numbers and dates, with Latin digits. Amounts have
 * the decimals of the currency. A unit price may have more decimals, so that readers can recompute
 * the amounts.
 */
function writers({ locale, currency }: Settings, type: Typesetter, { say, language }: Texts) {
  const digits = { numberingSystem: 'latn', maximumFractionDigits: 4 }
  const money = { numberingSystem: 'latn', style: 'currency', currency } as const
  const codes = { ...money, currencyDisplay: 'code' } as const
  const amounts = (more: Intl.NumberFormatOptions) => {
    const formats = [[locale, money] as const, [locale, codes] as const, ['en', codes] as const].map(
      ([language, each]) => new Intl.NumberFormat(language, { ...each, ...more }),
    )
    return (amount: number): string =>
      formats.map((format) => format.format(amount)).find((text) => type.has(text)) ?? String(amount)
  }
  const decimals = new Intl.NumberFormat(locale, money).resolvedOptions().maximumFractionDigits ?? 2
  const numbers = new Intl.NumberFormat(locale, digits)
  const percents = new Intl.NumberFormat(locale, { ...digits, style: 'percent', maximumFractionDigits: 6 })
  const days = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeZone: 'UTC',
    calendar: 'gregory',
    numberingSystem: 'latn',
  })
  return {
    say,
    label: (key: TextKey) => ({ ...type.setBold(say(key).toLocaleUpperCase(language)), ...atLeft, style: 'label' }),
    country: (code: string): string => countryName(code, { language }),
    money: amounts({}),
    price: amounts({ maximumFractionDigits: Math.max(decimals, 4) }),
    number: (value: number): string => numbers.format(value),
    percent: (value: number): string => percents.format(value / 100),
    day: (day: string): string => days.format(new Date(`${day}T00:00:00.000Z`)),
    set: type.set,
    setBold: type.setBold,
  }
}
