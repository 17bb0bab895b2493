// What exports of other programs say in their own way: who gets no mailings, tags in quotes, cards
// of companies, sums, deleted deals, other languages and scripts.
import { describe, expect, it } from 'vitest'
import { takingTables } from '../support/taking-tables.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

const { take, stored } = takingTables(() => server.admin)
const csv = (...lines: string[]): string => `${lines.join('\n')}\n`

describe('who gets no mailings', () => {
  it.each<[string, string, string[]]>([
    ['Salesforce', 'First Name,Last Name,Account Name,Email,Title,Email Opt Out', ['1', '0']],
    ['Salesforce data export', 'FirstName,LastName,Email,HasOptedOutOfEmail', ['true', 'false']],
    ['HubSpot', 'Record ID,First Name,Last Name,Email,Contact owner,Unsubscribed from all email', ['true', '']],
    ['Mailchimp', 'Email Address,First Name,Last Name,UNSUB_TIME', ['2026-02-01 10:00:00', '']],
    [
      'Pipedrive',
      'Person - Name,Person - Email - Work,Person - Marketing status',
      ['Unsubscribed', 'No consent given'],
    ],
    ['a German list', 'Name,E-Mail,Abgemeldet', ['ja', 'nein']],
    ['a Spanish list', 'Nombre,Correo,Dado de baja', ['Sí', 'No']],
  ])('is imported: %s', async (_, header, [out = '', inside = '']) => {
    const names = header.split(',')
    const rowOf = (address: string, mark: string): string =>
      names
        .map((name, index) => {
          if (index === names.length - 1) return mark
          if (/mail|correo/i.test(name)) return address
          return /name|nombre/i.test(name) && !/account/i.test(name) ? 'Ann' : ''
        })
        .join(',')
    const { done } = await take(
      'persons',
      'list.csv',
      csv(header, rowOf('out@x.example', out), rowOf('in@x.example', inside)),
    )
    expect(done.errors).toEqual([])
    const found = (await stored('persons')).map(({ emails, subscribed }: any) => [emails[0].value, subscribed])
    expect(found).toEqual([
      ['out@x.example', false],
      ['in@x.example', null],
    ])
  })

  it('is not read from empty marks, words for no, links and reasons', async () => {
    const rows = ['FALSCH', '0000-00-00 00:00:00', '-', 'N/A', 'faux', '0'].map(
      (mark, index) => `P${index},p${index}@x.example,${mark},https://x.example/u/${index},n/a`,
    )
    await take('persons', 'list.csv', csv('Name,Email,Email Opt Out,Unsubscribe Link,Opt out reason', ...rows))
    const found = (await stored('persons')).map(({ subscribed }: any) => subscribed)
    expect(found).toEqual(Array.from({ length: 6 }, () => null))
  })

  it('never lifts an opt-out by a status, and counts in any order of the columns', async () => {
    const person = { name: 'A', emails: [{ value: 'a@x.example' }], subscribed: false }
    await server.admin.post('/contacts/persons', person)
    const { done } = await take(
      'persons',
      'list.csv',
      csv('Name,Email,Email marketing status,Opt out', 'A,a@x.example,Subscribed,', 'B,b@x.example,Subscribed,Yes'),
    )
    expect((await stored('persons')).map(({ subscribed }: any) => subscribed)).toEqual([false, false])
    expect(done.changes).toContainEqual({ column: 'Opt out', from: 'Yes', to: 'false', count: 1 })
  })

  it('is known from any of several columns', async () => {
    await take(
      'persons',
      'list.csv',
      csv('Name,Email,Email Opt Out,UNSUB_TIME', 'A,a@x.example,0,2026-02-01', 'B,b@x.example,1,', 'C,c@x.example,0,'),
    )
    expect((await stored('persons')).map(({ subscribed }: any) => subscribed)).toEqual([false, false, null])
  })
})

describe('cells of other programs', () => {
  it('tags in quotes may have commas', async () => {
    await take('persons', 'list.csv', csv('Name,Email,TAGS', 'A,a@x.example,"""VIP"",""Messe, Zürich"""'))
    const [person] = await stored('persons')
    expect(person.tags.map(({ name }: any) => name).toSorted()).toEqual(['Messe, Zürich', 'VIP'])
  })

  it('a person has the first of several companies, and the report says so', async () => {
    const { done } = await take(
      'persons',
      'list.csv',
      csv('Name,Email,Company', 'A,a@x.example,Dupré et Fils;Groupe Dupré'),
    )
    expect((await stored('persons'))[0].organization.name).toBe('Dupré et Fils')
    expect(done.changes).toContainEqual({
      column: 'Company',
      from: 'Dupré et Fils;Groupe Dupré',
      to: 'Dupré et Fils',
      count: 1,
    })
  })

  it('line breaks of WooCommerce become line breaks', async () => {
    await take('products', 'list.csv', csv('SKU,Name,Description,Price,Quantity', 'A1,Chair,One\\nTwo,10,1'))
    expect((await stored('products'))[0].description).toBe('One\nTwo')
    await take('products', 'list.csv', csv('SKU,Name,Description,Price,Quantity', 'A2,Chair,C:\\new\\table,10,1'))
    expect((await stored('products'))[1].description).toBe('C:\\new\\table')
  })

  it('variants of Shopify have the title of their product, and rows of pictures are left out', async () => {
    const { analysis, done } = await take(
      'products',
      'products_export.csv',
      csv(
        'Handle,Title,Body (HTML),Tags,Option1 Name,Option1 Value,Variant SKU,Variant Inventory Qty,Variant Price,Image Src',
        'anchor,Leather Anchor,<p>Black</p>,mens,Size,S,A-S,7,69.99,a.jpg',
        'anchor,,,,,M,A-M,0,69.99,b.jpg',
        'anchor,,,,,,,,,c.jpg',
        'cup,Cup,,,Title,Default Title,C,1,5,',
        'mug,,,,Size,L,M-L,1,6,',
      ),
    )
    expect(analysis.layout).toBe('shopify-products')
    expect(done).toMatchObject({ processed_rows_count: 4, summary: { created: 4 } })
    // The row of another product does not get the title of the product above it.
    expect(done.errors).toMatchObject([])
    expect((await stored('products')).map(({ sku, name, tags }: any) => [sku, name, tags.length])).toEqual([
      ['A-S', 'Leather Anchor S', 1],
      ['A-M', 'Leather Anchor M', 1],
      ['C', 'Cup', 0],
      ['M-L', 'L', 0],
    ])
  })

  it('numbers in other digits are numbers', async () => {
    const { done } = await take('persons', 'list.csv', csv('Name,Phone', 'A,٠٥٠١٢٣٤٥٦٧', 'B,０３－１２３４－５６７８'))
    expect(done.errors).toEqual([])
    const numbers = (await stored('persons')).map(({ contact_numbers }: any) => contact_numbers[0].value)
    expect(numbers).toEqual(['0501234567', '03-1234-5678'])
  })

  it('headers in Japanese are known', async () => {
    const { done } = await take(
      'persons',
      'list.csv',
      csv('氏名,会社名,メールアドレス,電話番号,役職', '山田太郎,株式会社例,a@x.example,03-1234-5678,部長'),
    )
    expect(done.errors).toEqual([])
    expect((await stored('persons'))[0]).toMatchObject({
      name: '山田太郎',
      job_title: '部長',
      organization: { name: '株式会社例' },
    })
  })
})

describe('persons without a name', () => {
  const list = csv(
    'First Name,Last Name,Company,Email,Phone',
    ',,Acme,a@x.example,',
    ',,,b@x.example,',
    ',,,,030 123456',
  )

  it('are refused with a hint', async () => {
    const { done } = await take('persons', 'list.csv', list)
    expect(done.errors.map(({ message }: any) => message)[0]).toContain('missing_names: fill')
    expect(await stored('persons')).toEqual([])
  })

  it('are named by the organization, the address or the number on request, and the report says so', async () => {
    const { done } = await take('persons', 'list.csv', list, { missing_names: 'fill' })
    expect(done.errors).toEqual([])
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Acme', 'b@x.example', '030 123456'])
    expect(done.changes).toContainEqual({ column: 'name', from: null, to: 'b@x.example', count: 1 })
  })

  it('keep the name that they have when the file has none', async () => {
    await server.admin.post('/contacts/persons', { name: 'Ann', emails: [{ value: 'a@x.example' }] })
    const { analysis, done } = await take(
      'persons',
      'list.csv',
      csv('Email,Phone', 'a@x.example,030 123456', 'new@x.example,'),
    )
    expect(analysis.settings.missing_names).toBe('fill')
    expect(done.errors).toEqual([])
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Ann', 'new@x.example'])
  })
})

describe('deals of other programs', () => {
  it('have the numbers of their persons, and a column Phone is not a stage', async () => {
    const { analysis, done } = await take(
      'leads',
      'list.csv',
      csv('Title,Value,Contact,Email,Phone', 'Roof,100,Ann,a@x.example,555-0100 ext. 7'),
    )
    expect(analysis.settings.mapping.Phone).toBe('person_phone')
    expect(done.errors).toEqual([])
    const [lead] = await stored('leads')
    const person = (await server.admin.get(`/contacts/persons/${lead.person.id}`)).body.data
    expect(person.contact_numbers).toMatchObject([{ value: '555-0100 ext. 7' }])
  })

  it('keep the numbers of known persons, and the report says so', async () => {
    await server.admin.post('/contacts/persons', { name: 'Ann', emails: [{ value: 'a@x.example' }] })
    const { done } = await take('leads', 'list.csv', csv('Title,Value,Email,Phone', 'Roof,100,a@x.example,555-0100'))
    expect(done.changes).toContainEqual({ column: 'Phone', from: '555-0100', to: null, count: 1 })
  })

  it('keep their person when only an organization is sent for a stored lead', async () => {
    const made = await server.admin.post('/leads', { title: 'D', lead_value: 1, person: { name: 'Ann' } })
    const { id } = made.body.data
    const { done } = await take('leads', 'list.csv', csv('id,title,company,value', `${id},D,NewCo,77`))
    expect(done.errors).toMatchObject([{ column: 'company', code: 'cell_omitted' }])
    expect((await stored('leads'))[0]).toMatchObject({ lead_value: 77, person: { name: 'Ann' } })
  })

  it('have one date for closed and for open ones, in German too', async () => {
    await take(
      'leads',
      'list.csv',
      csv('Titel;Wert;Status;Abschluss', 'A;1;gewonnen;31.01.2026', 'B;2;offen;31.03.2027').replaceAll('; ', ';'),
    )
    const [won, open] = await stored('leads')
    expect([won.closed_at.slice(0, 10), open.expected_close_date]).toEqual(['2026-01-31', '2027-03-31'])
  })

  it.each(['Total', 'Summe', '合計', 'Grand total:'])('the row of a sum is left out: %s', async (word) => {
    const { done } = await take('leads', 'list.csv', csv('Title,Owner,Value', 'A,,10', 'B,,20', `${word},,30`))
    expect((await stored('leads')).map(({ title }: any) => title)).toEqual(['A', 'B'])
    expect(done.errors).toMatchObject([{ row: 4, column: null }])
  })

  it('a lead with such a name and more than numbers is a lead', async () => {
    await take('leads', 'list.csv', csv('Title,Source,Value', 'Total,Web,30'))
    expect(await stored('leads')).toHaveLength(1)
  })

  it('the second of two persons in a cell is named in the report', async () => {
    const cell = 'New Face (new@x.example);Second Face (second@x.example)'
    const { done } = await take('leads', 'list.csv', csv('Deal Name,Amount,Contact', `A,1,${cell}`))
    expect((await stored('leads'))[0].person.name).toBe('New Face')
    expect(done.changes).toContainEqual({ column: 'Contact', from: cell, to: 'New Face (new@x.example)', count: 1 })
  })
})

describe('vCards', () => {
  const card = (...lines: string[]): string => ['BEGIN:VCARD', 'VERSION:3.0', ...lines, 'END:VCARD', ''].join('\r\n')

  it('may be folded inside a character', async () => {
    const name = Buffer.from('FN:Fold Müller und Söhne')
    const at = name.indexOf(Buffer.from('ü')) + 1
    const folded = Buffer.concat([name.subarray(0, at), Buffer.from('\r\n '), name.subarray(at)])
    const before = Buffer.from(`${card('FN:Ann', 'EMAIL:ann@x.example')}BEGIN:VCARD\r\nVERSION:3.0\r\n`)
    const bytes = Buffer.concat([before, folded, Buffer.from('\r\nEMAIL:fold@x.example\r\nEND:VCARD\r\n')])
    const { analysis } = await take('persons', 'cards.vcf', bytes)
    expect(analysis.settings.encoding).toBe('utf-8')
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Ann', 'Fold Müller und Söhne'])
  })

  it('of groups are left out, extensions are read, and other properties are named and left out', async () => {
    const text =
      card('FN:Ann', 'TEL;VALUE=uri:tel:+354-555-0101;ext=22', 'ANNIVERSARY:20090808', 'PHOTO;ENCODING=b:aGFsbG8=') +
      card('FN:Sales friends', 'X-ADDRESSBOOKSERVER-KIND:group')
    const { analysis } = await take('persons', 'cards.vcf', text)
    expect(analysis.settings.mapping.other_properties).toBeNull()
    const [ann, ...others] = await stored('persons')
    expect(others).toEqual([])
    expect(ann.contact_numbers).toMatchObject([{ value: '+354-555-0101 ext. 22' }])
  })
})
