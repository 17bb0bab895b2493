// What stands on the paper of a printed quote, and where. Pure. The font has the Latin, Greek and Cyrillic letters; of other
// scripts it shows empty boxes, so amounts are written in what it has.
import type { Content, ContentTable, TableCell, TDocumentDefinitions } from 'pdfmake/interfaces.js'
import type { Config } from '../../config.ts'
import type { Schema } from '../../contract/types.ts'

type Quote = Schema<'Quote'>
type Settings = Pick<Config, 'appName' | 'locale' | 'currency'>

export interface Printed {
  quote: Quote
  date: string
  config: Settings
}

const ink = '#1f2937'
const pale = '#6b7280'
const rule = '#d1d5db'

/** Letter is the paper of these regions, A4 that of all others. */
const letterRegions = new Set(['US', 'CA', 'MX', 'PH', 'CL', 'CO', 'CR', 'GT', 'NI', 'PA', 'PR', 'SV', 'VE', 'DO'])

export function quoteDocument(quote: Quote, { date, config }: Omit<Printed, 'quote'>): TDocumentDefinitions {
  const write = writers(config)
  const title = `Quote ${quote.id}`
  return {
    info: { title: `${title}: ${quote.subject}`, author: config.appName, creationDate: new Date(quote.updated_at) },
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
        { text: `${config.appName} · ${title}`, width: '*' },
        { text: `Page ${page} of ${pages}`, width: 'auto' },
      ],
    }),
    content: [
      {
        columns: [
          { text: wrapped(config.appName, 30), fontSize: 15, bold: true, width: '*' },
          { text: title, fontSize: 15, color: pale, alignment: 'right', width: 'auto' },
        ],
        columnGap: 16,
      },
      { text: wrapped(quote.subject, 40), fontSize: 18, bold: true, margin: [0, 22, 0, 16] },
      facts(quote, date),
      items(quote, write),
      totals(quote, write),
    ],
  }
}

function facts(quote: Quote, date: string): Content {
  const block = (label: string, lines: readonly string[]): Content => ({
    stack: [{ text: label.toUpperCase(), style: 'label' }, ...lines.map((line) => ({ text: wrapped(line, 22) }))],
  })
  const { person, user, billing_address: billing, shipping_address: shipping } = quote
  return {
    columns: [
      block('Bill to', [person.name, ...postal(billing)]),
      block('Ship to', shipping ? [person.name, ...postal(shipping)] : ['Same as billing']),
      block('Contact', user ? [user.name, user.email] : ['—']),
      {
        stack: [block('Date', [date]), { ...box(block('Valid until', [quote.expired_at])), margin: [0, 8, 0, 0] }],
        width: 68,
      },
    ],
    columnGap: 14,
    margin: [0, 0, 0, 22],
  }
}

const box = (content: Content) => ({ stack: [content] })

const countries = new Intl.DisplayNames(['en'], { type: 'region' })

function postal({ address, postcode, city, state, country }: Schema<'Address'>): string[] {
  const place = [[postcode, city].filter(Boolean).join(' '), state].filter(Boolean).join(', ')
  return [...(address ?? '').split('\n'), place, country ? (countries.of(country) ?? country) : ''].filter(
    (line) => line.trim() !== '',
  )
}

function items({ items }: Quote, write: Writers): Content {
  const right = (text: string, below = ''): TableCell => ({
    stack: [{ text }, ...(below === '' ? [] : [{ text: below, style: 'small' }])],
    alignment: 'right',
    noWrap: true,
  })
  const head = ['Item', 'Quantity', 'Price', 'Discount', 'Tax', 'Amount'].map(
    (label, column): TableCell => ({
      text: label.toUpperCase(),
      style: 'label',
      margin: 0,
      alignment: column === 0 ? 'left' : 'right',
    }),
  )
  const rows = items.map((item): TableCell[] => [
    { stack: [{ text: wrapped(item.name, 18) }, { text: wrapped(item.sku, 20), style: 'small' }] },
    right(write.number(item.quantity)),
    right(write.money(item.price)),
    right(
      item.discount_amount === 0 ? '—' : write.money(-item.discount_amount),
      item.discount_percent === 0 ? '' : write.percent(item.discount_percent),
    ),
    right(
      item.tax_amount === 0 ? '—' : write.money(item.tax_amount),
      item.tax_percent === 0 ? '' : write.percent(item.tax_percent),
    ),
    right(write.money(item.total)),
  ])
  const none: TableCell[] = [{ text: 'No items.', colSpan: 6, style: 'small' }, '', '', '', '', '']
  // Amounts are never broken: where they are huge, they are written small.
  const longest = Math.max(
    0,
    ...items.flatMap(({ price, total }) => [write.money(price).length, write.money(total).length]),
  )
  return {
    fontSize: longest > 16 ? 7 : 9.5,
    table: {
      headerRows: 1,
      dontBreakRows: true,
      widths: ['*', 'auto', 'auto', 'auto', 'auto', 'auto'],
      body: [head, ...(rows.length > 0 ? rows : [none])],
    },
    layout: lines((row, count) => (row === 0 ? 0 : row === 1 || row === count ? 0.8 : 0.4)),
  }
}

function totals(quote: Quote, write: Writers): Content {
  const { discount_percent: percent, discount_amount: discount, adjustment_amount: adjustment } = quote
  const row = (label: string, amount: number, isLast = false): TableCell[] =>
    [
      { text: label, color: isLast ? ink : pale, noWrap: true },
      { text: write.money(amount), alignment: 'right' as const, noWrap: true },
    ].map((cell) => (isLast ? { ...cell, bold: true, fontSize: 12 } : cell))
  const label = percent === 0 ? 'Discount' : `Discount, ${write.percent(percent)} on all items included`
  const body = [
    row('Subtotal', quote.sub_total),
    ...(discount === 0 ? [] : [row(label, -discount)]),
    row('Tax', quote.tax_amount),
    ...(adjustment === 0 ? [] : [row('Adjustment', adjustment)]),
    row('Total', quote.grand_total, true),
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

const lines = (width: (row: number, count: number) => number): NonNullable<ContentTable['layout']> => ({
  hLineWidth: (row, { table }) => width(row, table.body.length),
  vLineWidth: () => 0,
  hLineColor: () => rule,
  paddingLeft: (column) => (column === 0 ? 0 : 8),
  paddingRight: () => 0,
  paddingTop: () => 5,
  paddingBottom: () => 5,
})

/** A word that is longer than its column is broken anywhere; others stay whole. */
function wrapped(text: string, longest: number): Content[] {
  const isLong = new RegExp(`^\\S{${longest},}$`, 'u')
  return text
    .split(new RegExp(`(\\S{${longest},})`, 'u'))
    .filter((part) => part !== '')
    .map((part) => (isLong.test(part) ? { text: part, wordBreak: 'break-all' } : { text: part }))
}

type Writers = ReturnType<typeof writers>

/** Numbers in the way of the locale. Amounts to their last decimal: what is printed adds up. */
function writers({ locale, currency }: Settings) {
  const digits = { numberingSystem: 'latn', maximumFractionDigits: 4 }
  const money = { ...digits, style: 'currency', currency } as const
  const amounts = [
    new Intl.NumberFormat(locale, money),
    new Intl.NumberFormat(locale, { ...money, currencyDisplay: 'code' }),
    new Intl.NumberFormat('en', { ...money, currencyDisplay: 'code' }),
  ]
  const numbers = new Intl.NumberFormat(locale, digits)
  const percents = new Intl.NumberFormat(locale, { ...digits, style: 'percent', maximumFractionDigits: 6 })
  return {
    money(amount: number): string {
      const texts = amounts.map((format) => inFont(format.format(amount)))
      return texts.find((text) => hasGlyphs.test(text)) ?? String(amount)
    },
    number: (value: number): string => inFont(numbers.format(value)),
    percent: (value: number): string => inFont(percents.format(value / 100)),
  }
}

/** The letters, signs and signs of currencies that the font has. */
const hasGlyphs =
  /^[\x20-\x7e\xa0-\u017f\u0370-\u0486\u2013\u2014\u2018-\u201e\u20a3\u20a4\u20a6-\u20ac\u20b1\u20b9\u20ba\u20bc\u20bd]*$/

/** Without marks of direction, and with the spaces and minus signs that the font has. */
const inFont = (text: string): string =>
  text
    .replaceAll(/[\u200e\u200f\u061c]/g, '')
    .replaceAll(/[\u2000-\u200a\u202f]/g, '\u00a0')
    .replaceAll('\u2212', '-')
