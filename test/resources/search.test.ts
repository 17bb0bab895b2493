// Search: every record is found by its words right after the write, best match first, and a caller
// finds only records that it could list.
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterEach, describe, expect, it } from 'vitest'
import { searchFold } from '../../db/schema/search-folding.ts'
import { searchIndex } from '../../src/operations.ts'
import { type Caller, start } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { migrateWithSearch } from '../support/search-index.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const make = given(server.admin)
afterEach(async () => {
  expect(await searchIndex.findProblem(server.store.db, server.store.dialect)).toBeNull()
})

interface Hit {
  type: string
  id: number
  title: string
  subtitle: string
  url: string
  score: number
}

async function search(q: string, more: Record<string, string> = {}, caller: Caller = server.admin): Promise<Hit[]> {
  const { status, body, text } = await caller.get('/search', { query: { q, ...more } })
  if (status !== 200) throw new Error(text)
  return body.data
}

const found = async (q: string, more?: Record<string, string>, caller?: Caller): Promise<string[]> =>
  (await search(q, more, caller)).map(({ type, id }) => `${type} ${id}`)

/** Creates a lead of a person of an organization. Each is found by a different word. */
async function deal() {
  const organization = await make.organization({ name: 'Zanzibar Trading', address: { city: 'Málaga', country: 'ES' } })
  const person = await make.person({
    name: 'Ödön Őrsi',
    emails: [{ value: 'odon@quuxmail.example', label: 'work' }],
    contact_numbers: [{ value: '+36 1 555-7788', label: 'work' }],
    job_title: 'Xylographer',
    organization_id: organization.id,
  })
  const lead = await make.lead({ title: 'Looms for the mill', description: 'A wyvern of a deal', person_id: person.id })
  return { organization, person, lead }
}

describe('searchRecords', () => {
  it('finds each type of record by its title and by its other words, and says what and where it is', async () => {
    const { organization, person, lead } = await deal()
    const product = await make.product({ sku: 'KX-9000', name: 'Vortex mixer', description: 'Blends zugzwang' })
    const activity = await make.activity({
      type: 'meeting',
      title: 'Yonder meeting',
      location: 'Quay 7',
      schedule_from: start,
      schedule_to: start,
    })
    const note = await make.activity({ type: 'note', title: null, comment: 'Jackdaws love\nmy big sphinx' })
    const asked: [q: string, type: string, id: number][] = [
      ['zanzibar', 'organizations', organization.id],
      ['malaga', 'organizations', organization.id],
      ['odon', 'persons', person.id],
      ['xylographer', 'persons', person.id],
      ['3615557788', 'persons', person.id],
      ['+36 1 555-7788', 'persons', person.id],
      ['looms', 'leads', lead.id],
      ['wyvern', 'leads', lead.id],
      ['vortex', 'products', product.id],
      ['kx-9000', 'products', product.id],
      ['zugzwang', 'products', product.id],
      ['yonder', 'activities', activity.id],
      ['quay', 'activities', activity.id],
      ['sphinx', 'activities', note.id],
    ]
    for (const [q, type, id] of asked) {
      const [best, ...more] = await found(q)
      expect.soft([q, best, more.sort()]).toEqual([q, `${type} ${id}`, [...others(q)].sort()])
    }

    const shown = async (q: string) => (await search(q))[0]
    const base = 'http://localhost:80/api/admin'
    expect(await shown('looms')).toEqual({
      type: 'leads',
      id: lead.id,
      title: 'Looms for the mill',
      subtitle: 'Ödön Őrsi · Zanzibar Trading',
      url: `${base}/leads/${lead.id}`,
      score: expect.any(Number),
    })
    expect(await shown('sphinx')).toMatchObject({ title: 'Jackdaws love', subtitle: 'note' })
    expect(await shown('kx-9000')).toMatchObject({ title: 'Vortex mixer', subtitle: 'KX-9000' })
    expect((await server.admin.get((await shown('odon'))?.url.slice(base.length) ?? '')).body.data.id).toBe(person.id)

    /**
     * Returns the other records that a word finds, because their documents contain fields of the
     * record.
     */
    function others(q: string): string[] {
      if (q === 'zanzibar') return [`persons ${person.id}`, `leads ${lead.id}`]
      return q === 'odon' ? [`leads ${lead.id}`] : []
    }
  })
})

describe('what matches', () => {
  it('is every record in which each word begins a word, wherever it stands, in either case and with or without accents', async () => {
    const { person, lead } = await deal()
    for (const q of [
      'loom',
      'LOOMS mill',
      'mill Looms',
      'wyvern zanz',
      'ödön loom',
      'ODON ŐRSI deal',
      'quuxmail.example mill',
    ])
      expect.soft([q, await found(q, { types: 'leads' })]).toEqual([q, [`leads ${lead.id}`]])
    for (const q of ['oom', 'looms vortex', 'loomsx', 'quuxmail example.org'])
      expect.soft([q, await found(q)]).toEqual([q, []])
    expect(await found('odon@quux')).toEqual([`persons ${person.id}`, `leads ${lead.id}`])
  })

  it('is best first: words in a title count more, and of equals the newest comes first, always in the same order', async () => {
    const inText = await make.product({ sku: 'a1', name: 'Other', description: 'a falcon and a falcon' })
    const first = await make.product({ sku: 'a2', name: 'Falcon', description: null })
    const second = await make.product({ sku: 'a3', name: 'Falcon', description: null })
    const hits = await search('falcon')
    expect(hits.map(({ id }) => id)).toEqual([second.id, first.id, inText.id])
    const scores = hits.map(({ score }) => score)
    expect(scores).toEqual([...scores].sort((one, other) => other - one))
    expect(scores[0]).toBe(scores[1])
    await searchIndex.rebuild(server.store.db, server.store.dialect)
    expect(await search('falcon')).toEqual(hits)
  })

  it('has the requested number of hits, without a total', async () => {
    for (let index = 0; index < 12; index++) await make.source({})
    for (let index = 0; index < 12; index++) await make.product({ sku: `p${index}`, name: `Petrel ${index}` })
    const page = async (query: Record<string, string>) =>
      (await server.admin.get('/search', { query: { q: 'petrel', ...query } })).body
    expect((await page({})).data).toHaveLength(10)
    const three = await page({ per_page: '3' })
    expect(three.data).toHaveLength(3)
    expect(three.meta).toEqual({
      is_total_exact: null,
      current_page: 1,
      from: 1,
      last_page: null,
      path: 'http://localhost:80/api/admin/search',
      per_page: 3,
      to: 3,
      total: null,
    })
    expect((await page({ per_page: '100' })).data).toHaveLength(12)
    expect((await page({ q: 'nothing' })).meta).toMatchObject({ from: null, to: null, total: null })
  })

  it('is empty without a word, and query syntax is plain text', async () => {
    await make.product({ sku: 'ops', name: 'Acme AND title', description: 'near body' })
    for (const q of ['--', '""', '*&', '😀😀', '" "', '()', '^^']) expect.soft([q, await found(q)]).toEqual([q, []])
    for (const q of [
      'acme AND',
      '"acme"',
      'acme*',
      'title acme',
      '^acme',
      '(acme',
      'acme"',
      'acme - title',
      'acme +near',
    ])
      expect.soft([q, (await found(q)).length]).toEqual([q, 1])
    for (const q of [
      'acme OR vortex',
      'acme NOT title',
      'title:body',
      'NEAR(acme title)',
      'acme" OR "x',
      "acme' OR 1=1",
    ])
      expect.soft([q, await found(q)]).toEqual([q, []])
  })

  it('is what the same rule finds in JavaScript, for any text', async () => {
    const letter = fc.constantFrom(
      'a',
      'á',
      'A',
      'b',
      'ß',
      'ø',
      '1',
      ' ',
      ' ',
      '-',
      '.',
      '"',
      '*',
      ':',
      '(',
      '{',
      '^',
      '\u0301',
      '日',
      '😀',
    )
    const text = fc.string({ unit: letter, minLength: 2, maxLength: 12 })
    const names = fc.sample(
      text.filter((each) => tokens(each).length > 0),
      { numRuns: 60, seed: 7 },
    )
    const db = server.store.db
    const products = await db
      .insertInto('products')
      .values(
        names.map((name, index) => ({
          sku: `z${index}`,
          sku_key: `z${index}`,
          name,
          name_key: name,
          price: 0,
          description: null,
          created_at: start,
          updated_at: start,
        })),
      )
      .returning(['id', 'name'])
      .execute()
    await searchIndex.rebuild(db, server.store.dialect)
    await fc.assert(
      fc.asyncProperty(text, async (q) => {
        fc.pre([...searchFold(q)].length >= 2)
        const words = q
          .split(/\s+/)
          .map(tokens)
          .filter((word) => word.length > 0)
        const expected = products.filter(
          ({ name }) => words.length > 0 && words.every((word) => begins(tokens(name), word)),
        )
        const hits = await search(q, { types: 'products', per_page: '100' })
        const wanted = expected.map(({ id }) => id)
        expect(hits.map(({ id }) => id).sort((a, b) => a - b)).toEqual(wanted)
      }),
      { numRuns: 150, seed: 11 },
    )

    function tokens(of: string): string[] {
      return of
        .normalize('NFD')
        .replaceAll(/\p{M}/gu, '')
        .toLowerCase()
        .replaceAll('ß', 'ss')
        .replaceAll('ø', 'o')
        .replaceAll('日', ' 日 ')
        .split(/[^\p{L}\p{N}]+/u)
        .filter(Boolean)
    }
    /** Returns whether the words occur consecutively in the text, the last one as a prefix. */
    function begins(in_: string[], word: string[]): boolean {
      return in_.some((_, at) =>
        word.every((part, index) =>
          index === word.length - 1 ? in_[at + index]?.startsWith(part) : in_[at + index] === part,
        ),
      )
    }
  })

  it('is refused to be asked without words, with too few or too many letters, and for types there are none', async () => {
    const refused = async (query: Record<string, string>) => {
      const { status, body } = await server.admin.get('/search', { query })
      return [status, Object.keys(body.errors ?? {})]
    }
    expect(await refused({})).toEqual([422, ['query.q']])
    expect(await refused({ q: 'a' })).toEqual([422, ['query.q']])
    expect(await refused({ q: 'a'.repeat(101) })).toEqual([422, ['query.q']])
    expect(await refused({ q: 'ab', types: 'leads,users' })).toEqual([422, ['query.types']])
    expect(await refused({ q: 'ab', page: '2' })).toEqual([422, ['query.page']])
  })
})

describe('the index', () => {
  it('follows every change in the same transaction, also to the records that quote the one that changed', async () => {
    const { organization, person, lead } = await deal()
    await server.admin.put(`/contacts/organizations/${organization.id}`, { name: 'Umbra Ltd' })
    expect(await found('zanzibar')).toEqual([])
    const [best, ...more] = await found('umbra')
    expect(best).toBe(`organizations ${organization.id}`)
    // The order of the person and the lead depends on the score of the engine.
    expect(more.sort()).toEqual([`leads ${lead.id}`, `persons ${person.id}`])
    expect((await search('looms'))[0]?.subtitle).toBe('Ödön Őrsi · Umbra Ltd')

    await server.admin.put(`/contacts/persons/${person.id}`, { name: 'Grizelda Knox' })
    expect([await found('ödön', { types: 'leads' }), await found('grizelda knox')]).toEqual([
      [`leads ${lead.id}`],
      [`persons ${person.id}`, `leads ${lead.id}`],
    ])
    await server.admin.put(`/contacts/persons/${person.id}`, { emails: [{ value: 'gk@example.org' }] })
    expect(await found('odon')).toEqual([])

    await server.admin.put(`/contacts/persons/${person.id}`, { organization_id: null })
    expect(await found('umbra')).toEqual([`organizations ${organization.id}`])
    await server.admin.post('/leads/mass-update', { ids: [lead.id], changes: { title: 'Spindles' } })
    expect([await found('looms'), await found('spindles')]).toEqual([[], [`leads ${lead.id}`]])
    await server.admin.delete(`/leads/${lead.id}`)
    expect(await found('spindles')).toEqual([])
    await server.admin.post('/contacts/persons/mass-delete', { ids: [person.id] })
    expect(await found('grizelda')).toEqual([])
  })

  it('forgets an organization with those who quoted it', async () => {
    const { organization, person, lead } = await deal()
    await server.admin.delete(`/contacts/organizations/${organization.id}`)
    expect(await found('zanzibar')).toEqual([])
    expect((await search('xylographer'))[0]?.subtitle).toBe('Xylographer')
    expect((await search('looms'))[0]).toMatchObject({ id: lead.id, subtitle: 'Ödön Őrsi' })
    expect(await found('odon')).toEqual([`persons ${person.id}`, `leads ${lead.id}`])
  })

  it('knows what was created on the way: the person and the organization of a lead', async () => {
    const person = { name: 'Inga Inline', emails: [{ value: 'inga@example.com' }], organization_name: 'Onroute GmbH' }
    const { body } = await server.admin.post('/leads', { title: 'Kites', lead_value: 1, person })
    expect(await found('inga')).toEqual([`persons ${body.data.person_id}`, `leads ${body.data.id}`])
    expect(await found('onroute')).toHaveLength(3)
  })

  it('keeps no trace of refused, vetoed, dry or rolled back writes', async () => {
    const { organization } = await deal()
    const rename = (name: string, headers = {}) =>
      server.admin.put(`/contacts/organizations/${organization.id}`, { name }, { headers })
    expect((await rename('Tryout', { 'accord-dry-run': 'true' })).status).toBe(200)
    expect((await rename('Stale', { 'if-match': '"999"' })).status).toBe(412)
    await make.organization({ name: 'Taken' })
    expect((await rename('taken')).status).toBe(409)
    expect([await found('tryout'), await found('stale'), await found('zanzibar', { types: 'organizations' })]).toEqual([
      [],
      [],
      [`organizations ${organization.id}`],
    ])
    const atomic = { ids: [999_999], changes: { title: 'Phantom' }, atomic: true }
    expect((await server.admin.post('/leads/mass-update', atomic)).status).toBe(422)
    expect(await found('phantom')).toEqual([])
  })

  it('knows quotes and mails, which are seen by rules of their own', async () => {
    const { person, lead } = await deal()
    const address = { address: '1 Way', city: 'Paris', country: 'FR', postcode: '75001' }
    const quote = await server.admin.post('/quotes', {
      subject: 'Nimbus offer',
      person_id: person.id,
      billing_address: address,
      expiry_date: '2026-12-31',
    })
    const mail = await server.admin.post('/emails', {
      subject: 'About the krill',
      html: '<p>Mind the <b>plankton</b></p>',
      to: ['squid@sea.example'],
      lead_id: lead.id,
      is_draft: true,
    })
    expect([quote.status, mail.status]).toEqual([201, 201])
    const [quoteId, mailId] = [quote.body.data.id, mail.body.data.id]
    for (const q of ['nimbus', 'odon nimbus']) expect(await found(q)).toEqual([`quotes ${quoteId}`])
    for (const q of ['krill', 'plankton', 'squid@sea']) expect(await found(q)).toEqual([`emails ${mailId}`])
    expect(await found('odon', { types: 'quotes' })).toEqual([`quotes ${quoteId}`])
    await server.admin.put(`/contacts/persons/${person.id}`, { name: 'Renamed' })
    expect(await found('renamed', { types: 'quotes' })).toEqual([`quotes ${quoteId}`])

    const own = await addUser(server, 'Own', { view: 'individual' })
    expect([await found('nimbus', {}, own), await found('krill', {}, own)]).toEqual([[], []])
    const inboxOnly = await addUser(server, 'Inbox', { permissions: ['mail', 'mail.inbox', 'mail.view'] })
    expect(await found('krill', {}, inboxOnly)).toEqual([])
    const drafts = await addUser(server, 'Drafts', { permissions: ['mail', 'mail.draft', 'mail.view'] })
    expect(await found('krill', {}, drafts)).toEqual([`emails ${mailId}`])

    await server.admin.delete(`/quotes/${quoteId}`)
    await server.admin.delete(`/emails/${mailId}?type=delete`)
    expect([await found('nimbus'), await found('krill')]).toEqual([[], []])
  })

  it('fires no event and writes nothing when it is asked', async () => {
    await deal()
    server.events()
    const before = await server.store.image()
    await found('zanzibar')
    expect(server.events()).toEqual([])
    expect((await server.store.image()).equals(before)).toBe(true)
  })

  it('is filled by a migration from the records there are', async () => {
    const { person, lead } = await deal()
    const { db } = server.store
    const stamps = { created_at: start, updated_at: start }
    await db
      .insertInto('quotes')
      .values({
        subject: 'Nimbus offer',
        subject_key: 'nimbus offer',
        person_id: person.id,
        billing_address: '{}',
        expiry_date: '2026-12-31',
        ...stamps,
      })
      .execute()
    await db
      .insertInto('emails')
      .values({
        subject: null,
        text: 'Krill\nis food',
        from: '["whale@sea.example"]',
        to: '["squid@sea.example"]',
        source: 'email',
        sender_type: 'person',
        status: 'received',
        message_id: 'm1',
        message_id_key: 'm1',
        lead_id: lead.id,
        ...stamps,
      })
      .execute()
    expect(await searchIndex.findProblem(db, server.store.dialect)).toMatch(/^it has 0 of 1 (quotes|emails)\.$/)

    await server.store.dialect.fullText.drop(db as never, 'search_index')
    await sql`drop table search_index`.execute(db)
    await db.deleteFrom('migrations').where('name', 'in', ['0016_search', '0019_flat_lists']).execute()
    await sql`drop index lead_pipeline_stages_sort_order_id_index`.execute(db)
    await sql`drop index emails_unfiled_index`.execute(db)
    expect(await migrateWithSearch(server.store)).toContain('0016_search')
    const rows = await db.selectFrom('search_index').selectAll().orderBy('entity_type').execute()
    const of = (type: string) => rows.find(({ entity_type }) => entity_type === type)
    expect(of('quotes')).toMatchObject({ title: 'Nimbus offer', subtitle: 'Ödön Őrsi', body: 'Ödön Őrsi' })
    expect(of('emails')).toMatchObject({
      title: 'Krill',
      subtitle: 'whale@sea.example',
      body: 'whale@sea.example\nsquid@sea.example\nKrill\nis food',
    })
    expect(await found('looms')).toEqual([`leads ${lead.id}`])
  })

  // Damages the tables of SQLite's full-text index.
  it.runIf(!isPostgres)('is said to be wrong when a record is missing or its words are', async () => {
    const { db, dialect } = server.store
    await deal()
    const all = await db.selectFrom('search_index').selectAll().execute()
    await db.deleteFrom('search_index').where('entity_type', '=', 'leads').execute()
    expect(await searchIndex.findProblem(db, dialect)).toBe('it has 0 of 1 leads.')
    await dialect.fullText.drop(db as never, 'search_index')
    await dialect.fullText.create(db as never, 'search_index')
    await sql`drop trigger search_index_words_insert`.execute(db)
    await db
      .insertInto('search_index')
      .values(all.filter(({ entity_type }) => entity_type === 'leads'))
      .execute()
    expect(await searchIndex.findProblem(db, dialect)).toMatch(/^its words are not those of the records/)
    await searchIndex.rebuild(db, dialect)
  })
})

describe('who finds what', () => {
  it('follows visibility: owners, their groups, and participants', async () => {
    const own = await addUser(server, 'Own', { view: 'individual' })
    const mate = await addUser(server, 'Mate', { view: 'group', group: 'Team' })
    const peer = await addUser(server, 'Peer', { view: 'individual', group: 'Team' })
    const { organization, person, lead } = await deal()
    const mine = await given(own).lead({ title: 'Looms of my own', person_id: (await given(own).person()).id })
    const theirs = await given(peer).lead({ title: 'Looms of a peer', person_id: (await given(peer).person()).id })
    const about = await make.activity({ type: 'note', comment: 'About looms', lead_ids: [mine.id] })
    await make.activity({ type: 'note', comment: 'About other looms', lead_ids: [lead.id] })
    const product = await make.product({ sku: 'lo', name: 'Looms' })
    const sorted = async (caller: Caller) => (await found('looms', {}, caller)).sort()
    expect(await sorted(own)).toEqual([`activities ${about.id}`, `leads ${mine.id}`, `products ${product.id}`])
    expect(await sorted(mate)).toEqual([`leads ${theirs.id}`, `products ${product.id}`])
    expect(await sorted(peer)).toEqual([`leads ${theirs.id}`, `products ${product.id}`])
    expect(await found('looms')).toHaveLength(6)
    expect(await found('zanzibar', {}, own)).toEqual([])
    expect((await found('zanzibar')).sort()).toEqual([
      `leads ${lead.id}`,
      `organizations ${organization.id}`,
      `persons ${person.id}`,
    ])
  })

  it('is found behind any number of records out of sight, with few questions', async () => {
    const own = await addUser(server, 'Own', { view: 'individual' })
    const template = await given(own).lead({
      title: 'Gannet of my own with a long title that weighs little',
      person_id: (await given(own).person()).id,
    })
    const { db } = server.store
    const {
      id: _id,
      version: _version,
      ...row
    } = await db.selectFrom('leads').selectAll().where('id', '=', template.id).executeTakeFirstOrThrow()
    const counts: number[] = []
    for (let part = 0; part < 4; part++) {
      await db
        .insertInto('leads')
        .values(Array.from({ length: 1500 }, () => ({ ...row, title: 'Gannet', title_key: 'gannet', user_id: 1 })))
        .execute()
      await searchIndex.rebuild(db, server.store.dialect)
      counts.push((await statementsOf(() => search('gannet', {}, own))).length)
    }
    expect(counts[3]).toBe(counts[1])
    expect((await found('gannet', { per_page: '100' })).length).toBe(100)
    expect(await found('gannet', {}, own)).toEqual([`leads ${template.id}`])
  })

  it('is who may list the type: others are left out, or refused when they are named', async () => {
    const { person, lead } = await deal()
    const clerk = await addUser(server, 'Clerk', { permissions: ['leads', 'contacts', 'contacts.organizations'] })
    expect(await found('odon', {}, clerk)).toEqual([`leads ${lead.id}`])
    const refused = async (caller: Caller, types: string) => {
      const { status, body } = await caller.get('/search', { query: { q: 'odon', types } })
      return [status, body.code, body.required]
    }
    expect(await refused(clerk, 'leads,persons')).toEqual([403, 'forbidden', 'contacts.persons'])
    const powerless = await addUser(server, 'Powerless', { permissions: [] })
    expect(await found('odon', {}, powerless)).toEqual([])

    const narrow = await server.as(1, ['persons:read'])
    expect(await found('odon', {}, narrow)).toEqual([`persons ${person.id}`])
    expect(await refused(narrow, 'leads')).toEqual([403, 'forbidden', 'leads:read'])
    expect(await refused(await server.as(1, ['persons:write']), 'persons')).toEqual([403, 'forbidden', 'any:read'])
    expect((await server.anonymous.get('/search', { query: { q: 'odon' } })).status).toBe(401)
  })

  it('finds the leads behind many better matches by addresses that the caller may not read', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    const { db } = server.store
    const emails = ['ada@example.com', 'xylophone@example.com'].map((value) => ({ value, label: 'work' }))
    const { body: hidden } = await server.admin.post('/contacts/persons', { name: 'Hidden', emails })
    const { body: made } = await server.admin.post('/leads', { title: 'Deal', lead_value: 1 })
    const { id: _id, ...row } = await db
      .selectFrom('leads')
      .selectAll()
      .where('id', '=', made.data.id)
      .executeTakeFirstOrThrow()
    const insert = (count: number, change: object) =>
      db
        .insertInto('leads')
        .values(Array.from({ length: count }, () => ({ ...row, ...change })))
        .execute()
    await insert(5, { user_id: ben.id, description: `xylophone${' and others'.repeat(50)}` })
    await insert(600, { title: 'Xylophone', title_key: 'xylophone' })
    await insert(120, { user_id: ben.id, person_id: hidden.data.id })
    await searchIndex.rebuildOnline(server.store)
    const reader = await server.as(ben.id, ['leads:read'])
    expect((await reader.get('/leads?q=xylophone')).body.meta.total).toBe(5)
    expect(await found('xylophone', {}, reader)).toHaveLength(5)
    expect((await ben.get('/leads?q=xylophone')).body.meta.total).toBe(125)
  })
})

it.each([
  ['a', 422],
  [' é ', 422],
  ['𝐚', 422],
  ['ab', 200],
  ['王', 200],
  ['ア', 200],
  ['ｱ', 200],
])('a search for %j answers %i', async (q, expected) => {
  const { status, body } = await server.admin.get(`/search?q=${encodeURIComponent(q)}`)
  expect([status, body.errors?.['query.q']]).toEqual([
    expected,
    expected === 200 ? undefined : ['Must have at least 2 characters.'],
  ])
})
