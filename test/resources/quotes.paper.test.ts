// The content of a printed quote, read from its PDF in visual order with its glyphs.
import { deflateSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import type { Body } from '../../src/contract/types.ts'
import { isDrawable } from '../../src/resources/quotes/logo.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { linesOf, type Shown, textOf } from '../support/pdf.ts'

let server: TestServer
afterEach(() => server.close())

async function printed(id: number): Promise<Buffer> {
  const { statusCode, rawPayload } = await server.inject({
    method: 'GET',
    url: `/api/admin/quotes/${id}/print`,
    headers: { authorization: `Bearer ${server.admin.token}` },
  })
  expect(statusCode).toBe(200)
  return rawPayload
}

async function paper(changes: Partial<Body<'createQuote'>> = {}): Promise<{ shown: Shown[]; lines: string[] }> {
  const { id } = await given(server.admin).quote(changes)
  const shown = textOf(await printed(id))
  return { shown, lines: linesOf(shown) }
}

const missing = (shown: readonly Shown[]): string[] =>
  shown.filter(({ glyphs }) => glyphs.includes(0)).map(({ text }) => text)

describe('the letters of a printed quote', { timeout: 60_000 }, () => {
  it('have glyphs in Latin, Greek, Cyrillic, Chinese, Japanese, Korean, Arabic and Hebrew', async () => {
    server = await startServer()
    const subjects = [
      'Größe Łódź Ελληνικά Привет',
      '会议室椅子，带轮子（黑色）',
      '見積書 東京都 オフィス',
      '臺灣辦公椅',
      '사무용 의자',
    ]
    for (const subject of subjects) {
      const { shown, lines } = await paper({ subject })
      expect([subject, missing(shown)]).toEqual([subject, []])
      expect(lines).toContain(subject)
    }
    for (const subject of ['كرسي مكتب', 'כיסא משרדי']) {
      const { shown, lines } = await paper({ subject })
      expect([subject, missing(shown)]).toEqual([subject, []])
      expect(lines).toContain([...subject].reverse().join(''))
    }
  }, 60_000)

  it('have glyphs in the scripts of South and Southeast Asia, the Caucasus and Ethiopia, and for emoji and coins', async () => {
    server = await startServer()
    const subjects = [
      ...['कार्यालय कुर्सी ₹', 'অফিস চেয়ার ৳', 'அலுவலக நாற்காலி', 'కార్యాలయ కుర్చీ', 'ಕಚೇರಿ ಕುರ್ಚಿ', 'ഓഫീസ് കസേര'],
      ...['ઓફિસ ખુરશી', 'ਦਫ਼ਤਰ ਦੀ ਕੁਰਸੀ', 'කාර්යාල පුටුව', 'เก้าอี้สำนักงาน', 'ເກົ້າອີ້', 'កៅអីការិយាល័យ', 'ရုံးထိုင်ခုံ'],
      ...['საოფისე სკამი ₾', 'Գրասենյակային աթոռ ֏', 'የቢሮ ወንበር', 'Chairs 🪑 🎉 😀', '₿ 5 ₺ ₽ ₴ ₦ ₫ €'],
    ]
    for (const subject of subjects) {
      const { shown } = await paper({ subject })
      expect.soft([subject, missing(shown)]).toEqual([subject, []])
    }
  })

  it('run from right to left where the script does, numbers and Latin words from left to right, brackets turned', async () => {
    server = await startServer()
    const { lines } = await paper({ subject: 'כיסא (שחור) 24 יחידות ABC' })
    expect(lines).toContain('ABC תודיחי 24 (רוחש) אסיכ')
    const inside = await paper({ subject: 'Chair כיסא (שחור) 24' })
    expect(inside.lines).toContain('Chair 24 (רוחש) אסיכ')
  })

  it('join in Arabic, and lines are filled in the order of reading', async () => {
    server = await startServer()
    const { shown } = await paper({ subject: 'ببب' })
    const word = shown.find(({ text }) => text === 'ببب')
    expect(new Set(word?.glyphs).size).toBe(3)
    const words = Array.from({ length: 40 }, (_, index) => `كلمة${String.fromCodePoint(0x627 + (index % 20))}`)
    const { lines } = await paper({ description: words.join(' ') })
    const terms = lines.slice(lines.indexOf('TERMS') + 1, -1)
    expect(terms.length).toBeGreaterThan(1)
    const read = terms.map((line) => [...line].reverse().join('').trim()).join(' ')
    expect(read).toBe(words.join(' '))
  })

  it('may be as many as a description holds', async () => {
    server = await startServer()
    const letters = Array.from({ length: 65_535 }, (_, index) => String.fromCodePoint(0x4e00 + ((index * 37) % 3000)))
    const { lines } = await paper({ description: letters.join('') })
    expect(lines.length).toBeGreaterThan(1000)
  }, 60_000)

  it('are taken from the fonts alone that a text needs', async () => {
    server = await startServer()
    const { shown } = await paper({ subject: 'Forty seats' })
    expect(new Set(shown.map(({ font }) => font)).size).toBe(2)
  })
})

describe('the figures of a printed quote', { timeout: 60_000 }, () => {
  const items = async () => {
    const product = await given(server.admin).product({ sku: 'CH-1' })
    return [{ product_id: product.id, name: 'Chair', quantity: 3, price: 1234.5, tax_percent: 10 }]
  }

  const labels = { en: ['Subtotal', 'Tax', 'Total'], de: ['Zwischensumme', 'Steuer', 'Gesamtbetrag'] }

  it.each([
    ['JPY', 'ja-JP', labels.en, ['¥3,704', ', 10% on ¥3,704¥370', '¥4,074']],
    ['EUR', 'de-DE', labels.de, ['3.703,50 €', ', 10 % auf 3.703,50 €370,35 €', '4.073,85 €']],
    ['KWD', 'en-US', labels.en, ['KWD 3,703.500', ', 10% on KWD 3,703.500KWD 370.350', 'KWD 4,073.850']],
  ] as const)('have the decimals of %s', async (currency, locale, names, amounts) => {
    server = await startServer({ config: { currency, locale } })
    const { lines, shown } = await paper({ items: await items() })
    expect(missing(shown)).toEqual([])
    for (const [label, amount] of names.map((each, index) => [each, amounts[index]]))
      expect(lines).toContain(`${label}${amount}`)
  })

  it('show a price to its last decimal, and days as the locale writes them', async () => {
    server = await startServer({ config: { currency: 'EUR', locale: 'de-DE' } })
    const [item] = await items()
    const { lines } = await paper({ items: item ? [{ ...item, price: 0.0125, quantity: 1000 }] : [] })
    expect(lines.find((line) => line.startsWith('Chair'))).toContain('0,0125 €')
    expect(lines.some((line) => line.endsWith('01.03.2026'))).toBe(true)
  })
})

describe('the parties and items on a printed quote', { timeout: 60_000 }, () => {
  const png = (pixels: Buffer, width = 1): Buffer => {
    const chunk = (kind: string, bytes: Buffer): Buffer => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(bytes.length)
      return Buffer.concat([length, Buffer.from(kind), bytes, Buffer.alloc(4)])
    }
    const header = Buffer.alloc(13)
    header.writeUInt32BE(width, 0)
    header.writeUInt32BE(1, 4)
    header.set([8, 2], 8)
    const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
  }
  const good = png(deflateSync(Buffer.from([0, 255, 0, 0])))
  const upload = async (name: string, bytes: Buffer): Promise<number> => {
    const { body, headers } = await form({ file: file(name, bytes) })
    return (await server.admin.post('/files', body, { headers })).body.data.id
  }
  const save = (values: object) => server.admin.put('/settings/configuration', { values })

  it('is the seller with address, tax number and logo, the organization of the customer, and the terms', async () => {
    server = await startServer({ config: { appName: 'Accord' } })
    const make = given(server.admin)
    const bare = await paper()
    expect(bare.lines[0]).toMatch(/^Accord/)
    expect(bare.lines).not.toContain('TERMS')
    const logo = await upload('logo.png', good)
    const saved = await save({
      'general.company.name': 'Stühle GmbH',
      'general.company.address': 'Hauptstraße 1\n10115 Berlin',
      'general.company.tax_id': 'DE123456789',
      'general.company.logo': logo,
    })
    expect(saved.status, saved.text).toBe(200)
    const organization = await make.organization({ name: 'Analytical Engines' })
    const person = await make.person({ name: 'Ada Lovelace', organization_id: organization.id })
    const description = 'Payment within 30 days.\nDelivery ex works.'
    const { id } = await make.quote({ person_id: person.id, description })
    const pdf = await printed(id)
    expect(pdf.toString('latin1').match(/\/Subtype \/Image/g)).toHaveLength(1)
    const lines = linesOf(textOf(pdf))
    for (const line of ['Stühle GmbH', 'Hauptstraße 1', '10115 Berlin', 'Tax ID: DE123456789'])
      expect(lines.some((each) => each.startsWith(line))).toBe(true)
    const at = lines.findIndex((line) => line.startsWith('Analytical Engines'))
    expect(lines[at + 1]).toMatch(/^Ada Lovelace/)
    expect(lines.slice(lines.indexOf('TERMS'), -1)).toEqual(['TERMS', ...description.split('\n')])
  })

  it('has no logo that is damaged, and takes none that is no PNG or JPEG', async () => {
    server = await startServer()
    const damaged = await upload('logo.png', png(Buffer.from('no pixels at all')))
    expect((await save({ 'general.company.logo': damaged })).status).toBe(200)
    const { id } = await given(server.admin).quote()
    expect((await printed(id)).toString('latin1')).not.toContain('/Subtype /Image')
    const half = await upload('logo.jpg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46]))
    expect((await save({ 'general.company.logo': half })).status).toBe(200)
    expect((await printed(id)).toString('latin1')).not.toContain('/Subtype /Image')
    const text = await upload('logo.txt', Buffer.from('words'))
    const refused = await save({ 'general.company.logo': text })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['values.general.company.logo']])
  })

  it('knows a PNG whose pixels are too many, too few or cut off before it is drawn', () => {
    expect(isDrawable(good)).toBe(true)
    expect(isDrawable(png(deflateSync(Buffer.from([0, 255, 0, 0])), 4_000_001))).toBe(false)
    expect(isDrawable(png(deflateSync(Buffer.from([0, 255])), 1))).toBe(false)
    expect(isDrawable(good.subarray(0, 50))).toBe(false)
    expect(isDrawable(Buffer.from('GIF89a'))).toBe(false)
  })
})

describe('the columns, discounts and terms of a printed quote', { timeout: 60_000 }, () => {
  const chair = { name: 'Chair', quantity: 2, price: 100 }
  const heads = (lines: readonly string[]): string | undefined => lines.find((line) => line.startsWith('ITEM'))

  it('has no column in which every cell is empty', async () => {
    server = await startServer()
    expect(heads((await paper({ items: [chair] })).lines)).toBe('ITEMQUANTITYPRICEAMOUNT')
    const taxed = [chair, { ...chair, tax_percent: 10 }]
    expect(heads((await paper({ items: taxed })).lines)).toBe('ITEMQUANTITYPRICETAXAMOUNT')
    const cheaper = [chair, { ...chair, discount_amount: 5 }]
    expect(heads((await paper({ items: cheaper })).lines)).toBe('ITEMQUANTITYPRICEDISCOUNTAMOUNT')
    expect(heads((await paper({ items: [] })).lines)).toBe('ITEMQUANTITYPRICEAMOUNT')
  })

  it('names a discount by its percentage, apart from the discount on items', async () => {
    server = await startServer({ config: { currency: 'EUR', locale: 'en-GB' } })
    const whole = await paper({ items: [chair], discount_percent: 5 })
    expect(whole.lines).toContain('Discount (5% on all items)-€10.00')
    const both = await paper({ items: [{ ...chair, discount_percent: 10 }], discount_percent: 5 })
    expect(both.lines).toContain('Discount on single items-€20.00')
    expect(both.lines).toContain('Discount (5% on all items)-€9.00')
    const items = await paper({ items: [{ ...chair, discount_amount: 0.01 }] })
    expect(items.lines).toContain('Discount-€0.01')
  })

  it('ends with the terms of the installation, below its own, as they were when it was sent', async () => {
    server = await startServer()
    const save = (terms: string | null) =>
      server.admin.put('/settings/configuration', { values: { 'quotes.terms': terms } })
    expect((await save('  Payment within 30 days.\n\nThe <b>goods</b> stay ours.\n')).status).toBe(200)
    const { id } = await given(server.admin).quote({ description: 'Delivery in May.', items: [chair] })
    const ending = async (): Promise<string[]> => {
      const lines = linesOf(textOf(await printed(id)))
      return lines.slice(lines.indexOf('TERMS') + 1, -1).filter((line) => line.trim() !== '')
    }
    const all = ['Delivery in May.', 'Payment within 30 days.', 'The <b>goods</b> stay ours.']
    expect(await ending()).toEqual(all)
    expect((await server.admin.put(`/quotes/${id}`, { status: 'sent' })).status).toBe(200)
    await save('Other terms.')
    expect(await ending()).toEqual(all)
    expect((await paper({ description: null })).lines).toContain('Other terms.')
    await save(null)
    expect((await paper({ description: null })).lines).not.toContain('TERMS')
    expect((await save('x'.repeat(10_001))).status).toBe(422)
  })
})
