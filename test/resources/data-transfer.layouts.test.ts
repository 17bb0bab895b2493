// Imports of tables as other programs write them, with the settings that the analysis suggests.
import { describe, expect, it } from 'vitest'
import { personOf, takingTables } from '../support/taking-tables.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

const { take, stored } = takingTables(() => server.admin)
const none = { emails: [], contact_numbers: [], job_title: null, organization: null, tags: [] }
const values = (points: any[]) => points.map(({ value }) => value)

describe('contacts of other programs', () => {
  it('google: names in parts, labels, " ::: " and groups; a contact without a name is refused', async () => {
    const { analysis, done } = await take('persons', 'google-contacts.csv')
    expect(analysis.layout).toBe('google-contacts')
    const [grace, ann, ...others] = await stored('persons')
    expect(personOf(grace)).toEqual({
      name: 'Grace B. Keller',
      emails: ['grace@keller.example', 'grace.k@home.example'],
      contact_numbers: ['+1 202 555 0101', '+1 202 555 0102', '+1 202 555 0103'],
      job_title: 'Admiral',
      organization: 'Keller GmbH',
      tags: ['Clients'],
    })
    expect(grace.contact_numbers.map(({ label }: any) => label)).toEqual(['mobile', 'mobile', 'work'])
    expect(personOf(ann)).toEqual({ ...none, name: 'Ann Otter', contact_numbers: ['0151 2345678'] })
    expect(others).toEqual([])
    expect(done.errors).toMatchObject([{ row: 4, column: 'First Name', code: 'validation_failed' }])
    expect(done.warnings).toContain('The column Notes is left out; it has 1 value.')
    expect(analysis.warnings).toContain('The column Birthday is left out; it has 1 value.')
    expect(done.warnings.join()).not.toContain('Phone 1 - Label')
  })

  it('outlook: the title is a part of the name, and 0/0/00 is empty', async () => {
    const { analysis, done } = await take('persons', 'outlook-contacts.csv')
    expect([analysis.layout, done.errors]).toEqual(['outlook-contacts', []])
    expect((await stored('persons')).map(personOf)).toEqual([
      {
        name: 'Dr. Otto Lang',
        emails: ['otto@lang.example', 'otto@home.example'],
        contact_numbers: ['+49 30 1234567', '+49 151 7654321'],
        job_title: 'CTO',
        organization: 'Lang GmbH',
        tags: [],
      },
    ])
  })

  it('hubspot: the owner by address; a filled column that is left out is named', async () => {
    const { analysis, done } = await take('persons', 'hubspot-contacts.csv')
    expect(analysis.layout).toBe('hubspot-contacts')
    const [hugo] = await stored('persons')
    expect(hugo).toMatchObject({ name: 'Hugo Spohr', organization: { name: 'Spohr Inc' } })
    expect([values(hugo.emails), values(hugo.contact_numbers)]).toEqual([['hugo@spohr.example'], ['+1 202 555 0110']])
    expect(hugo.user.email).toBe('admin@example.com')
    expect(done.warnings).toEqual(expect.arrayContaining(['The column Lead Status is left out; it has 1 value.']))
  })

  it('salesforce: an unknown owner is a warning, and the notes below a report are left out', async () => {
    const { analysis, done, validated } = await take('persons', 'salesforce-report.csv')
    expect(analysis.layout).toBe('salesforce-contacts')
    expect(done).toMatchObject({ state: 'completed', summary: { created: 1, skipped: 0 } })
    expect(validated.errors).toEqual([
      {
        row: 2,
        column: 'Account Owner',
        code: 'cell_omitted',
        message: expect.stringContaining('No user has the name Mary Owner.'),
      },
    ])
    const [sally] = await stored('persons')
    expect(sally).toMatchObject({ name: 'Sally Forst', job_title: 'VP', organization: { name: 'Forst Corp' } })
    expect(sally.user.email).toBe('admin@example.com')
    expect(done.warnings).toContain('The last 4 rows below the table are left out.')
  })
})

describe('further contacts', () => {
  it('google before 2019: names in parts, types as labels and groups', async () => {
    const { analysis } = await take(
      'persons',
      'contacts.csv',
      [
        'Name,Given Name,Additional Name,Family Name,Group Membership,E-mail 1 - Type,E-mail 1 - Value,Phone 1 - Type,Phone 1 - Value,Organization 1 - Name,Organization 1 - Title',
        'Ada King,Ada,,King,* myContacts ::: VIP,* Home,ada@x.example ::: ada@y.example,Mobile,+1 202 555 0100,Acme,Chief',
        'Acme Desk,,,,* myContacts,* Work,desk@x.example,,,,',
      ].join('\n'),
    )
    expect(analysis.layout).toBe('google-contacts-2019')
    const [ada, desk] = await stored('persons')
    expect(personOf(ada)).toEqual({
      name: 'Ada King',
      emails: ['ada@x.example', 'ada@y.example'],
      contact_numbers: ['+1 202 555 0100'],
      job_title: 'Chief',
      organization: 'Acme',
      tags: ['VIP'],
    })
    expect(ada.emails.map(({ label }: any) => label)).toEqual(['home', 'home'])
    expect(desk.name).toBe('Acme Desk')
  })

  it('thunderbird: the parts of the name, or the name that it shows', async () => {
    const { analysis } = await take(
      'persons',
      'book.csv',
      [
        'First Name,Last Name,Display Name,Nickname,Primary Email,Secondary Email,Screen Name,Work Phone,Home Phone,Fax Number,Pager Number,Mobile Number,Job Title,Department,Organization,Notes',
        'Tim,Bird,Timmy,,tim@x.example,tim@y.example,,+1 202 555 0101,,,,+1 202 555 0102,Pilot,,Air,',
        ',,The Office,,office@x.example,,,,,,,,,,,',
      ].join('\n'),
    )
    expect(analysis.layout).toBe('thunderbird-contacts')
    expect((await stored('persons')).map(personOf)).toMatchObject([
      { name: 'Tim Bird', emails: ['tim@x.example', 'tim@y.example'], job_title: 'Pilot', organization: 'Air' },
      { name: 'The Office', emails: ['office@x.example'] },
    ])
  })

  it('pipedrive and zoho: owners by name, several addresses, and a consent that was withdrawn', async () => {
    const [{ name: admin }] = (await server.admin.get('/settings/users?sort=id')).body.data
    const pipedrive = await take(
      'persons',
      'people.csv',
      [
        'Person - Name,Person - Label,Person - Organization,Person - Phone - Work,Person - Phone - Mobile,Person - Email - Work,Person - Email - Home,Person - Owner,Person - Open deals',
        `Pip Drive,Hot lead,Acme,+1 202 555 0111,+1 202 555 0112,pip@x.example,pip@home.example,${admin},2`,
      ].join('\n'),
    )
    expect([pipedrive.analysis.layout, pipedrive.done.errors]).toEqual(['pipedrive-contacts', []])
    const zoho = await take(
      'persons',
      'Contacts.csv',
      [
        'Record Id,Contact Owner.id,Contact Owner,Salutation,First Name,Last Name,Account Name,Email,Secondary Email,Phone,Mobile,Title,Email Opt Out,Tag',
        'zcrm_1,zcrm_9,admin@example.com,Ms.,Zoe,Ho,Acme,zoe@x.example,zoe@y.example,+1 202 555 0121,,CFO,true,"a, b"',
      ].join('\n'),
    )
    expect([zoho.analysis.layout, zoho.done.errors]).toEqual(['zoho-contacts', []])
    const [pip, zoe] = await stored('persons')
    expect(personOf(pip)).toMatchObject({ name: 'Pip Drive', emails: ['pip@x.example', 'pip@home.example'] })
    expect(pip.emails[1].label).toBe('home')
    expect(personOf(zoe)).toEqual({
      name: 'Ms. Zoe Ho',
      emails: ['zoe@x.example', 'zoe@y.example'],
      contact_numbers: ['+1 202 555 0121'],
      job_title: 'CFO',
      organization: 'Acme',
      tags: ['a', 'b'],
    })
    expect(zoe.subscribed).toBe(false)
    expect(zoe.user.email).toBe('admin@example.com')
  })

  it('apple and android: cards of the versions 2.1, 3.0 and 4.0', async () => {
    const cards = [
      'BEGIN:VCARD\r\nVERSION:3.0\r\nN:Apfel;Anna;;Dr.;\r\nFN:Dr. Anna Apfel\r\nORG:Obst GmbH;Ein\\, Verkauf\r\nTITLE:Leiterin\r\n',
      'EMAIL;type=INTERNET;type=HOME:anna@home.example\r\nEMAIL;type=INTERNET;type=WORK;type=pref:anna@obst.example\r\n',
      'item1.TEL:+49 30 1234567\r\nitem1.X-ABLabel:_$!<Assistant>!$_\r\nTEL;type=CELL;type=VOICE:+49 151\r\n  7654321\r\n',
      'CATEGORIES:Kunden,VIP\r\nNOTE:Zeile 1\\nZeile 2\r\nPHOTO;ENCODING=b;TYPE=JPEG:AAAA\r\n BBBB\r\nEND:VCARD\r\n',
      'BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6=\nrg;;;\nTEL;CELL:+49 151 1111111\nEND:VCARD\n',
      'BEGIN:VCARD\nVERSION:4.0\nFN:Vera Vier\nTEL;VALUE=uri;TYPE="voice,work":tel:+1-202-555-0199\nEMAIL:vera@x.example\nEND:VCARD\n',
    ].join('')
    const { analysis, done } = await take('persons', 'contacts.vcf', cards)
    expect([analysis.layout, done.errors]).toEqual(['vcard', []])
    const people = await stored('persons')
    expect(people.map(personOf)).toEqual([
      {
        name: 'Dr. Anna Apfel',
        emails: ['anna@obst.example', 'anna@home.example'],
        contact_numbers: ['+49 30 1234567', '+49 151 7654321'],
        job_title: 'Leiterin',
        organization: 'Obst GmbH',
        tags: ['Kunden', 'VIP'],
      },
      { ...none, name: 'Jörg Müller', contact_numbers: ['+49 151 1111111'] },
      { ...none, name: 'Vera Vier', emails: ['vera@x.example'], contact_numbers: ['+1-202-555-0199'] },
    ])
    expect(people[0].contact_numbers.map(({ label }: any) => label)).toEqual(['assistant', 'mobile'])
    expect(done.warnings).toEqual([
      'The column department is left out; it has 1 value.',
      'The column note is left out; it has 1 value.',
      'The column other_properties is left out; it has 1 value.',
    ])
  })

  it('a file of another program: first and last names, and several addresses', async () => {
    const { analysis } = await take(
      'persons',
      'list.csv',
      'Nachname,Vorname,E-Mail,E-Mail 2,Mobil,Telefon,Firma\nOtter,Ann,ann@x.example,ann@y.example,+49 151 1234567,+49 30 1234567,Otter KG\n',
    )
    expect(analysis.layout).toBeNull()
    expect((await stored('persons')).map(personOf)).toEqual([
      {
        name: 'Ann Otter',
        emails: ['ann@x.example', 'ann@y.example'],
        contact_numbers: ['+49 151 1234567', '+49 30 1234567'],
        job_title: null,
        organization: 'Otter KG',
        tags: [],
      },
    ])
  })
})

describe('deals of other programs', () => {
  it('hubspot: a won deal is won, with the person of its contact', async () => {
    await take('persons', 'hubspot-contacts.csv')
    const { analysis, done } = await take('leads', 'hubspot-deals.csv')
    expect(analysis.layout).toBe('hubspot-deals')
    expect(done.summary).toMatchObject({ created: 1 })
    const [lead] = await stored('leads')
    expect(lead).toMatchObject({ title: 'Forty seats', lead_value: 1200, status: 2, stage: { name: 'Won' } })
    expect([lead.person.email, lead.closed_at.slice(0, 16)]).toEqual(['hugo@spohr.example', '2026-02-03T10:00'])
    expect(done.changes).toContainEqual({ column: 'Deal Stage', from: 'Closed Won', to: 'Won', count: 1 })
    expect(done.errors).toMatchObject([{ column: 'Pipeline', code: 'cell_omitted' }])
    expect(await stored('persons')).toHaveLength(1)
  })

  it('pipedrive: the status decides, and the missing person comes with its organization', async () => {
    const { analysis } = await take('leads', 'pipedrive-deals.csv')
    expect(analysis).toMatchObject({ layout: 'pipedrive-deals', settings: { unknown_references: 'create' } })
    const [lead] = await stored('leads')
    expect(lead).toMatchObject({
      title: 'Big order',
      lead_value: 1200,
      status: 3,
      lost_reason: 'too dear',
      person: { name: 'Dee Person', email: 'dee@x.example' },
      organization: { name: 'Acme' },
    })
  })
})

describe('further deals', () => {
  it('salesforce: flags of won and closed decide, an open deal keeps its date, and reasons stay with lost ones', async () => {
    const { analysis, done } = await take(
      'leads',
      'report.csv',
      [
        'Opportunity Owner,Account Name,Opportunity Name,Stage,Close Date,Amount,Won,Closed,Lead Source,Type,Loss Reason,IsDeleted',
        'admin@example.com,Acme,Alpha,Signed,2/13/2026,"1,200.00",1,1,,,,0',
        'admin@example.com,Acme,Beta,Dropped,2/14/2026,"1,300.00",0,1,,,Price,false',
        'admin@example.com,Acme,Gamma,Negotiation,12/31/2027,,0,0,,,,0',
        'admin@example.com,Acme,Delta,Negotiation,12/31/2027,5,0,0,,,,1',
        'admin@example.com,Acme,Epsilon,Signed,2/13/2026,5,1,1,,,,1',
        'admin@example.com,Acme,Zeta,Dropped,2/13/2026,5,0,1,,,,true',
      ].join('\n'),
    )
    expect(analysis.layout).toBe('salesforce-opportunities')
    expect(
      (await stored('leads')).map((each: any) => [each.title, each.status, each.lead_value, each.lost_reason]),
    ).toEqual([
      ['Alpha', 2, 1200, null],
      ['Beta', 3, 1300, 'Price'],
      ['Gamma', 1, 0, null],
    ])
    const [alpha, , gamma] = await stored('leads')
    expect([alpha.closed_at.slice(0, 10), gamma.closed_at]).toEqual(['2026-02-13', null])
    expect([gamma.expected_close_date, gamma.stage.name]).toEqual(['2027-12-31', 'Negotiation'])
    expect(done.changes).toContainEqual({ column: 'lead_value', from: null, to: '0', count: 1 })
    // A report of opportunities has no contacts, so a person with the name of the account has it.
    expect([alpha.person.name, alpha.organization.name]).toEqual(['Acme', 'Acme'])
    expect(alpha.person.id).toBe(gamma.person.id)
    expect(done.changes).toContainEqual({ column: 'person', from: null, to: 'Acme', count: 1 })
  })

  it('zoho: a contact by name, a closed stage by its words, and a reason', async () => {
    await server.admin.post('/contacts/persons', { name: 'Zed Contact', emails: [{ value: 'zed@x.example' }] })
    const { analysis } = await take(
      'leads',
      'Deals.csv',
      [
        'Record Id,Deal Owner,Deal Name,Account Name,Contact Name,Amount,Closing Date,Stage,Type,Lead Source,Pipeline,Reason For Loss',
        'zcrm_1,admin@example.com,Big,Acme,Zed Contact,100,2026-02-01,Closed Lost to Competition,,,Standard,too slow',
      ].join('\n'),
    )
    expect(analysis.layout).toBe('zoho-deals')
    expect(await stored('leads')).toMatchObject([
      { title: 'Big', status: 3, lost_reason: 'too slow', person: { email: 'zed@x.example' } },
    ])
  })

  it('an unknown stage leaves the lead open with a report, and refuses the row by default', async () => {
    const deals = 'Deal Name,Deal Stage,Amount,Close Date\nOne,Phase 2,5,2026-02-01\n'
    const { done } = await take('leads', 'deals.csv', deals)
    expect(done.errors).toMatchObject([{ column: 'Deal Stage', code: 'cell_omitted' }])
    expect(await stored('leads')).toMatchObject([{ status: 1, closed_at: null, expected_close_date: '2026-02-01' }])
    const strict = await take('leads', 'deals.csv', deals.replace('Phase 2', 'Negotiaton'), {
      unknown_references: 'refuse',
    })
    expect(strict.done.errors).toMatchObject([
      {
        code: 'unknown_reference',
        message: 'No stage has the name Negotiaton. Did you mean `Negotiation`?',
      },
    ])
  })

  it('a deal without a stage keeps neither closing time nor reason, and a deleted one is left out', async () => {
    const { done } = await take(
      'leads',
      'deals.csv',
      [
        'Deal - Title,Deal - Value,Deal - Stage,Deal - Status,Deal - Won time,Deal - Lost reason',
        'A,1,Contract sent,Open,2026-02-03 10:00:00,too dear',
        'B,2,Prospect,Deleted,,',
      ].join('\n'),
    )
    expect(done.errors.map(({ row, column, code }: any) => [row, column, code])).toEqual([
      [2, 'Deal - Stage', 'cell_omitted'],
      [2, 'Deal - Lost reason', 'cell_omitted'],
      [2, 'Deal - Won time', 'cell_omitted'],
      [3, null, 'validation_failed'],
    ])
    expect((await stored('leads')).map(({ title, stage }: any) => [title, stage.name])).toEqual([['A', 'New']])
  })

  it('a closed stage is known by its words', async () => {
    const stages = ['closedwon', 'closed_lost', 'Gewonnen', '6 - Closed/Won', 'Won together']
    const rows = stages.map((stage, n) => `D${n},1,${stage}`).join('\n')
    await take('leads', 'own.csv', `Deal Name,Amount,Deal Stage\n${rows}\n`)
    expect((await stored('leads')).map(({ status }: any) => status)).toEqual([2, 3, 2, 2, 2])
  })

  it('a value map names the stage, and several rows share a new person', async () => {
    const { validated, done } = await take(
      'leads',
      'own.csv',
      'title,value,phase,kontakt\nA,1,Signed,Nia New (nia@x.example)\nB,2,Signed,Nia New (nia@x.example)\n',
      {
        mapping: {
          title: 'title',
          value: 'lead_value',
          phase: { fields: ['stage'], values: { signed: 'Won' } },
          kontakt: 'person',
        },
        unknown_references: 'create',
      },
    )
    expect(done).toMatchObject({ state: 'completed', errors: [] })
    expect(validated.changes).toContainEqual({ column: 'phase', from: 'Signed', to: 'Won', count: 2 })
    const leads = await stored('leads')
    expect(leads.map(({ status, person }: any) => [status, person.email])).toEqual([
      [2, 'nia@x.example'],
      [2, 'nia@x.example'],
    ])
    expect(await stored('persons')).toHaveLength(1)
  })

  it('say when the person of a deal has another organization than the row', async () => {
    await server.admin.post('/contacts/persons', {
      name: 'Nia',
      emails: [{ value: 'nia@x.example' }],
      organization_name: 'Société X',
    })
    const rows = ['Societe X', 'Other Ltd', ''].map((name, index) => `Deal ${index},5,nia@x.example,${name}`)
    const { done } = await take(
      'leads',
      'deals.csv',
      ['title,lead_value,person_email,organization_name', ...rows, ''].join('\n'),
    )
    expect(done.errors).toEqual([])
    expect(done.changes).toEqual([{ column: 'organization_name', from: 'Other Ltd', to: 'Société X', count: 1 }])
  })
})

describe('companies and products of other programs', () => {
  it('hubspot and shopify', async () => {
    const companies = await take(
      'organizations',
      'companies.csv',
      'Record ID,Company name,Company owner,Street Address,City,State/Region,Postal Code,Country/Region,Industry\n1,Hub Ltd,admin@example.com,1 Road,Reno,NV,89501,USA,Retail\n2,Uhr AG,,Weg 1,Bern,,3000,Schweiz,Retail\n',
    )
    expect([companies.analysis.layout, companies.done.errors]).toEqual(['hubspot-companies', []])
    expect((await stored('organizations'))[0]).toMatchObject({
      name: 'Hub Ltd',
      address: { address: '1 Road', city: 'Reno', state: 'NV', postcode: '89501', country: 'US' },
      user: { email: 'admin@example.com' },
    })
    expect((await stored('organizations'))[1].address.country).toBe('CH')
    const products = await take(
      'products',
      'products_export.csv',
      'Handle,Title,Body (HTML),Vendor,Type,Tags,Published,Option1 Name,Option1 Value,Variant SKU,Variant Grams,Variant Inventory Qty,Variant Price,Image Src,Status\ncup,Cup,<p>Nice</p>,V,Mugs,"blue, new",TRUE,Title,Default Title,\'00123,0,7,12.50,,active\n',
    )
    expect([products.analysis.layout, products.done.errors]).toEqual(['shopify-products', []])
    expect((await stored('products'))[0]).toMatchObject({ sku: '00123', name: 'Cup', price: 12.5, quantity: 7 })
  })

  it('salesforce: address columns with a word in front', async () => {
    const { analysis, done } = await take('organizations', 'salesforce-accounts.csv')
    expect(analysis.layout).toBe('salesforce-accounts')
    expect((await stored('organizations'))[0]).toMatchObject({
      name: 'Sierra Ltd',
      address: { address: '1 Main St', city: 'Reno', state: 'NV', postcode: '89501', country: 'US' },
    })
    expect(done.changes).toEqual([{ column: 'Billing Country', from: 'United States', to: 'US', count: 1 }])
    expect(done.warnings).toEqual(['The column Phone is left out; it has 1 value.'])
  })

  it('woocommerce: a flag is not a quantity, and an empty column sets nothing', async () => {
    const { analysis } = await take('products', 'woocommerce-products.csv')
    expect(analysis.layout).toBe('woocommerce-products')
    const products = await stored('products')
    expect(products).toMatchObject([{ sku: 'WC-1', name: 'Mug', price: 9.9, quantity: 12 }])
  })
})
