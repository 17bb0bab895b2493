// Some thousands of records of each searchable resource, inserted directly, with every kind of link
// between them. The rows stay in memory, so that a test can work out each list itself.

import { textKey } from '../../../src/kernel/values/names.ts'
import { searchIndex } from '../../../src/operations.ts'
import type { Random } from '../../fuzz/random.ts'
import { start, type TestServer } from '../../support/app.ts'

export interface Owned {
  id: number
  user_id: number | null
}

export interface OrganizationRecord extends Owned {
  name: string
  country: string | null
}

export interface PersonRecord extends Owned {
  name: string
  job_title: string | null
  emails: string[]
  organization_id: number | null
  note: string | null
}

export interface LeadRecord extends Owned {
  title: string
  description: string | null
  lead_value: number
  status: number
  person_id: number | null
  pipeline_id: number
  stage_id: number
  expected_close_date: string | null
  note: string | null
  budget: number | null
  size: number | null
}

export interface QuoteRecord extends Owned {
  subject: string
  description: string | null
  person_id: number
  grand_total: number
  expiry_date: string
  leads: number[]
}

export interface ProductRecord {
  id: number
  sku: string
  name: string
  description: string | null
  price: number
}

export interface ActivityRecord extends Owned {
  type: string
  title: string | null
  comment: string | null
  schedule_from: string | null
  is_done: number
  participants: number[]
  leads: number[]
  persons: number[]
  organizations: number[]
  quotes: number[]
}

export interface EmailRecord extends Owned {
  subject: string | null
  text: string | null
  from: string
  source: string
  sent_at: string | null
  is_read: number
  lead_id: number | null
  person_id: number | null
  folder: string
}

/** A stage of a pipeline. */
export interface StageRecord {
  id: number
  pipeline_id: number
  sort_order: number
}

export interface Records {
  leads: LeadRecord[]
  persons: PersonRecord[]
  organizations: OrganizationRecord[]
  quotes: QuoteRecord[]
  products: ProductRecord[]
  activities: ActivityRecord[]
  emails: EmailRecord[]
}

/** What the records refer to. */
export interface Surroundings {
  /** The owners; null for records without an owner. Some ids occur several times. */
  owners: readonly (number | null)[]
  stages: readonly StageRecord[]
  sizes: readonly number[]
}

const counts = {
  organizations: 250,
  persons: 1_500,
  leads: 3_000,
  quotes: 1_500,
  products: 300,
  activities: 2_500,
  emails: 2_500,
}

const common = ['alpha', 'harbor', 'alpine', 'Élan', 'O’Neil', 'straße']
const rare = ['kilo', 'zebra', 'quartz', '東京駅', '🚀', '100%', 'a_b', '"quoted"', 'ｗｉｄｅ', 'ij']

/** Returns a text of one to four words, most of which occur in many texts. */
function words(random: Random): string {
  return Array.from({ length: random.whole(1, 4) }, () =>
    random.chance(0.8) ? random.pick(common) : random.chance(0.5) ? random.pick(rare) : `n${random.whole(1, 300)}`,
  ).join(' ')
}

const numbered = <T>(count: number, make: (id: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index + 1))

const day = (random: Random): string => `2026-0${random.whole(1, 9)}-${random.whole(10, 28)}`

/** Returns the rows of a world, which `insertRecords` inserts. */
export function makeRecords(random: Random, { owners, stages, sizes }: Surroundings): Records {
  const maybe = <T>(share: number, make: () => T): T | null => (random.chance(share) ? make() : null)
  const some = (most: number, share: number): number[] => [
    ...new Set(Array.from({ length: random.few(2) }, () => maybe(share, () => random.whole(1, most)) ?? []).flat()),
  ]
  const owner = () => random.pick(owners)
  const organizations = numbered(counts.organizations, (id) => ({
    id,
    user_id: owner(),
    name: `${words(random)} ${id}`,
    country: maybe(0.6, () => random.pick(['DE', 'FR', 'US'])),
  }))
  const persons = numbered(counts.persons, (id) => ({
    id,
    user_id: owner(),
    name: words(random),
    job_title: maybe(0.5, () => words(random)),
    emails: [`p${id}@mail.example`, ...(random.chance(0.1) ? [`hidden${id % 9}@other.example`] : [])],
    organization_id: maybe(0.7, () => random.whole(1, counts.organizations)),
    note: maybe(0.2, () => words(random)),
  }))
  const leads = numbered(counts.leads, (id) => {
    const stage = random.pick(stages)
    return {
      id,
      user_id: owner(),
      title: words(random),
      description: maybe(0.3, () => words(random)),
      lead_value: random.whole(0, 40) * 2_500,
      status: random.whole(1, 3),
      person_id: maybe(0.8, () => random.whole(1, random.chance(0.5) ? 50 : counts.persons)),
      pipeline_id: stage.pipeline_id,
      stage_id: stage.id,
      expected_close_date: maybe(0.5, () => day(random)),
      note: maybe(0.3, () => words(random)),
      budget: maybe(0.5, () => random.whole(0, 60) * 12_345),
      size: maybe(0.4, () => random.pick(sizes)),
    }
  })
  const quotes = numbered(counts.quotes, (id) => ({
    id,
    user_id: owner(),
    subject: words(random),
    description: maybe(0.3, () => words(random)),
    person_id: random.whole(1, counts.persons),
    grand_total: random.whole(0, 50) * 10_000,
    expiry_date: day(random),
    leads: some(counts.leads, 0.3),
  }))
  const products = numbered(counts.products, (id) => ({
    id,
    sku: `sku-${id}`,
    name: words(random),
    description: maybe(0.3, () => words(random)),
    price: random.whole(0, 30) * 10_000,
  }))
  const users = owners.filter((each) => each !== null)
  const activities = numbered(counts.activities, (id) => ({
    id,
    user_id: owner(),
    type: random.pick(['call', 'meeting', 'lunch', 'note']),
    title: maybe(0.8, () => words(random)),
    comment: maybe(0.5, () => words(random)),
    schedule_from: maybe(0.5, () => `${day(random)}T10:00:00.000Z`),
    is_done: random.whole(0, 1),
    participants: random.chance(0.1) ? [random.pick(users)] : [],
    leads: some(counts.leads, 0.3),
    persons: some(counts.persons, 0.3),
    organizations: some(counts.organizations, 0.2),
    quotes: some(counts.quotes, 0.2),
  }))
  const emails = numbered(counts.emails, (id) => ({
    id,
    user_id: random.chance(0.4) ? null : owner(),
    subject: maybe(0.8, () => words(random)),
    text: maybe(0.6, () => words(random)),
    from: `from${random.whole(1, 99)}@mail.example`,
    source: random.pick(['web', 'email']),
    sent_at: maybe(0.5, () => `${day(random)}T10:00:00.000Z`),
    is_read: random.whole(0, 1),
    lead_id: maybe(0.2, () => random.whole(1, counts.leads)),
    person_id: maybe(0.3, () => random.whole(1, counts.persons)),
    folder: random.pick(['inbox', 'draft', 'sent', 'trash']),
  }))
  return { organizations, persons, leads, quotes, products, activities, emails }
}

/** The time of creation, which ten records have in common. */
export const createdAt = ({ id }: { id: number }): string =>
  new Date(Date.parse(start) + 60_000 * Math.floor(id / 10)).toISOString()

const keyOf = (text: string | null): string | null => (text === null ? null : textKey(text))
const points = (values: readonly string[]): string => JSON.stringify(values.map((value) => ({ value, label: 'work' })))
const attributesOf = (values: Record<string, string | number | null>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)))

const addressIn = (country: string): string =>
  JSON.stringify({ address: 'Road 1', country, state: 'Nil', city: 'Ulm', postcode: '89073' })

/** Inserts the records and rebuilds the search index. */
export async function insertRecords({ store }: TestServer, records: Records): Promise<void> {
  const insert = async (table: string, rows: readonly object[]): Promise<void> => {
    for (let at = 0; at < rows.length; at += 500)
      await store.db
        .insertInto(table as 'leads')
        .values(rows.slice(at, at + 500) as never)
        .execute()
  }
  const stamps = (row: { id: number }) => ({ created_at: createdAt(row), updated_at: createdAt(row) })
  await insert(
    'organizations',
    records.organizations.map(({ country, ...row }) => ({
      ...row,
      ...stamps(row),
      name_key: textKey(row.name),
      address: country && addressIn(country),
    })),
  )
  await insert(
    'persons',
    records.persons.map(({ note, ...row }) => ({
      ...row,
      ...stamps(row),
      name_key: textKey(row.name),
      job_title_key: keyOf(row.job_title),
      emails: points(row.emails),
      custom_attributes: attributesOf({ note }),
    })),
  )
  await insert(
    'leads',
    records.leads.map(({ note, budget, size, pipeline_id, stage_id, ...row }) => ({
      ...row,
      ...stamps(row),
      title_key: textKey(row.title),
      stage_changed_at: start,
      lead_source_id: 1,
      lead_type_id: 1,
      lead_pipeline_id: pipeline_id,
      lead_pipeline_stage_id: stage_id,
      custom_attributes: attributesOf({ note, budget, size }),
    })),
  )
  await insert(
    'quotes',
    records.quotes.map(({ leads, ...row }) => ({
      ...row,
      ...stamps(row),
      subject_key: textKey(row.subject),
      billing_address: addressIn('DE'),
    })),
  )
  await insert(
    'lead_quotes',
    records.quotes.flatMap(({ id, leads }) => leads.map((lead_id) => ({ lead_id, quote_id: id }))),
  )
  await insert(
    'products',
    records.products.map((row) => ({
      ...row,
      ...stamps(row),
      sku_key: textKey(row.sku),
      name_key: textKey(row.name),
    })),
  )
  await insertActivities(insert, records.activities, stamps)
  await insert(
    'emails',
    records.emails.map(({ folder, from, ...row }) => ({
      ...row,
      ...stamps(row),
      from: JSON.stringify([from]),
      subject_key: keyOf(row.subject),
      sender_type: 'user',
      status: row.source === 'email' ? 'received' : 'sent',
      message_id: `<${row.id}@mail.example>`,
      message_id_key: `<${row.id}@mail.example>`,
      thread_id: row.id,
    })),
  )
  await insert(
    'email_folders',
    records.emails.map(({ id, folder }) => ({ email_id: id, folder })),
  )
  await searchIndex.rebuildOnline(store)
}

async function insertActivities(
  insert: (table: string, rows: readonly object[]) => Promise<void>,
  activities: readonly ActivityRecord[],
  stamps: (row: { id: number }) => object,
): Promise<void> {
  await insert(
    'activities',
    activities.map(({ participants, leads, persons, organizations, quotes, ...row }) => ({
      ...row,
      ...stamps(row),
      title_key: keyOf(row.title),
    })),
  )
  await insert(
    'activity_participants',
    activities.flatMap(({ id, participants }) => participants.map((user_id) => ({ activity_id: id, user_id }))),
  )
  for (const noun of ['lead', 'person', 'organization', 'quote'] as const)
    await insert(
      `${noun}_activities`,
      activities.flatMap((row) => row[`${noun}s`].map((id) => ({ activity_id: row.id, [`${noun}_id`]: id }))),
    )
}
