// Works out in JavaScript what a list shows: which records a user sees, which of them match the
// filters and the words, and in which order they come.

import { queryParts, searchFold, searchPhrase, searchWords, textKey } from '../../../db/schema/search-folding.ts'
import { fold } from '../../../src/kernel/values/format.ts'
import type { Random } from '../../fuzz/random.ts'
import {
  type ActivityRecord,
  createdAt,
  type EmailRecord,
  type LeadRecord,
  type OrganizationRecord,
  type Owned,
  type PersonRecord,
  type ProductRecord,
  type QuoteRecord,
  type Records,
  type StageRecord,
} from './many-records.ts'

type Value = string | number | null

export interface Viewer {
  /** The owners whose records the user sees; null for a global view. */
  owners: ReadonlySet<number> | null
  /** The folders of e-mails that the user may open; null for all. */
  folders: ReadonlySet<string> | null
}

interface SortKey<Row> {
  value: (row: Row) => Value
  /** The id of the joined record with the value; undefined for a value of the record itself. */
  parent?: (row: Row) => number | null
}

export interface Filter<Row> {
  text: string
  test: (row: Row) => boolean
}

/** What the contract says about a list. */
export interface ListOracle<Row extends { id: number }> {
  path: string
  rows: readonly Row[]
  sees: (viewer: Viewer, row: Row) => boolean
  /** Whether the list finds records by the ids that a caller with a limited view sees. */
  hasSight: boolean
  sorts: Record<string, SortKey<Row>>
  filters: (random: Random) => Filter<Row>[]
  texts: (viewer: Viewer, row: Row) => (string | null)[]
}

export type AnyList = ListOracle<any>

const seesOwner = ({ owners }: Viewer, owner: number | null): boolean =>
  owners === null || (owner !== null && owners.has(owner))

const sees = (viewer: Viewer, row: Owned): boolean => seesOwner(viewer, row.user_id)

/** Returns whether the user sees a record of a type: by its owner, or by the owner of a lead. */
type SeesRecord = (viewer: Viewer, row: Owned | undefined) => boolean

const rules = new WeakMap<Records, Record<'persons' | 'organizations' | 'quotes' | 'leads', SeesRecord>>()

function sightOf(records: Records): Record<'persons' | 'organizations' | 'quotes' | 'leads', SeesRecord> {
  const known = rules.get(records)
  if (known) return known
  const { leads, persons, quotes } = records
  const owners = { persons: new Map(), organizations: new Map(), quotes: new Map() } as const
  const add = (entity: keyof typeof owners, id: number | null | undefined, lead: Owned | undefined): void => {
    const { [entity]: reached }: Record<string, Map<number, (number | null)[]>> = owners
    if (id && lead) reached?.set(id, [...(reached.get(id) ?? []), lead.user_id])
  }
  for (const lead of leads) {
    add('persons', lead.person_id, lead)
    add('organizations', at(persons, lead.person_id)?.organization_id, lead)
  }
  for (const quote of quotes) for (const id of quote.leads) add('quotes', quote.id, at(leads, id))
  const rule =
    (entity: keyof typeof owners): SeesRecord =>
    (viewer, row) =>
      row !== undefined &&
      (sees(viewer, row) || (owners[entity].get(row.id) ?? []).some((owner: number | null) => seesOwner(viewer, owner)))
  const made = {
    leads: ((viewer, row) => row !== undefined && sees(viewer, row)) satisfies SeesRecord,
    persons: rule('persons'),
    organizations: rule('organizations'),
    quotes: rule('quotes'),
  }
  rules.set(records, made)
  return made
}

/** Orders texts by their bytes. */
const compareTexts = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other))

function compare(one: Value, other: Value, isDescending: boolean): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1
  const order = typeof one === 'string' ? compareTexts(one, String(other)) : one - Number(other)
  return isDescending ? -order : order
}

/** Returns the rows in the order of the sort keys, such as `-title`. */
export function inOrder<Row extends { id: number }>(
  rows: readonly Row[],
  names: readonly string[],
  sorts: Record<string, SortKey<Row>>,
): Row[] {
  const keys = names.map((name) => ({
    ...(sorts[name.replace(/^-/, '')] as SortKey<Row>),
    isDescending: name.startsWith('-'),
  }))
  const isDescending = keys.at(-1)?.isDescending ?? true
  const parent = keys.at(-1)?.parent
  if (parent) keys.push({ value: parent, isDescending })
  keys.push({ value: ({ id }) => id, isDescending })
  const valued = rows.map((row) => ({ row, values: keys.map(({ value }) => value(row)) }))
  valued.sort((one, other) => {
    for (const [index, { isDescending }] of keys.entries()) {
      const order = compare(one.values[index] as Value, other.values[index] as Value, isDescending)
      if (order !== 0) return order
    }
    return 0
  })
  return valued.map(({ row }) => row)
}

/** Returns whether every word of `q` is in one of the texts; a short word must begin a word. */
export function matches(q: string, texts: readonly (string | null)[]): boolean {
  const known = texts.filter((text) => text !== null)
  return queryParts(q).every((part) => {
    if (!known.some((text) => searchFold(text).includes(part))) return false
    const phrase = searchPhrase(part)
    if ([...part].length >= 3 || phrase === '') return true
    return known.some((text) => ` ${searchWords(text)}`.includes(` ${phrase}`))
  })
}

/** Returns whether the words of every part of `q` begin a word of one of the texts, in a row. */
export function isHit(q: string, texts: readonly (string | null)[]): boolean {
  const known = texts.flatMap((text) => (text === null ? [] : ` ${searchWords(text)}`))
  return queryParts(q).every((part) => known.some((text) => text.includes(` ${searchPhrase(part)}`)))
}

const key = (text: (row: any) => string | null | undefined) => ({
  value: (row: any): string | null => {
    const found = text(row)
    return found === null || found === undefined ? null : textKey(found)
  },
})
const own = (value: (row: any) => Value) => ({ value })
const stamped = {
  id: own(({ id }: { id: number }) => id),
  created_at: own(createdAt),
  updated_at: own(createdAt),
}
const after = (id: number): string => encodeURIComponent(createdAt({ id }))
const sinceFilter = (random: Random, count: number): Filter<any> => {
  const id = random.whole(1, count)
  return { text: `created_at[gte]=${after(id)}`, test: (row) => createdAt(row) >= createdAt({ id }) }
}
const ownerFilter = (random: Random, users: readonly number[]): Filter<any> => {
  const user = random.pick(users)
  return { text: `user_id=${user}`, test: ({ user_id }) => user_id === user }
}
const ownerless: Filter<any> = { text: 'user_id[null]=true', test: ({ user_id }) => user_id === null }

export interface Facts {
  records: Records
  users: ReadonlyMap<number, string>
  stages: readonly StageRecord[]
  /** The ids of the options of the attribute `size`, in order. */
  sizes: readonly number[]
}

const at = <Row>(rows: readonly Row[], id: number | null): Row | undefined => (id === null ? undefined : rows[id - 1])

function leadList({ records: { leads, organizations, persons }, users, stages, sizes }: Facts): AnyList {
  const owners = [...users.keys()]
  const personOf = (row: { person_id: number | null }) => at(persons, row.person_id)
  const stageOf = (row: LeadRecord) => stages.find(({ id }) => id === row.stage_id) as StageRecord
  const list: ListOracle<LeadRecord> = {
    path: '/leads',
    rows: leads,
    sees,
    hasSight: true,
    sorts: {
      ...stamped,
      title: key(({ title }) => title),
      lead_value: own(({ lead_value }) => lead_value),
      status: own(({ status }) => status),
      expected_close_date: own((row) => row.expected_close_date),
      person_name: { ...key((row) => personOf(row)?.name), parent: ({ person_id }) => person_id },
      user_name: { ...key((row) => users.get(row.user_id ?? 0)), parent: ({ user_id }) => user_id },
      stage_sort_order: { value: (row) => stageOf(row).sort_order, parent: ({ stage_id }) => stage_id },
      'custom_attributes.note': own(({ note }) => (note === null ? null : fold(note))),
      'custom_attributes.budget': own(({ budget }) => budget),
      'custom_attributes.size': own(({ size }) => (size === null ? null : sizes.indexOf(size))),
    },
    filters: (random) => {
      const [status, least, size] = [random.whole(1, 3), random.whole(0, 40) * 2_500, random.pick(sizes)]
      const stage = random.pick(stages)
      const organization = random.whole(1, 250)
      const person = random.whole(1, 50)
      return [
        sinceFilter(random, leads.length),
        ownerFilter(random, owners),
        ownerless,
        { text: `status=${status}`, test: (row) => row.status === status },
        { text: `lead_value[gte]=${least / 10_000}`, test: (row) => row.lead_value >= least },
        { text: `lead_pipeline_stage_id=${stage.id}`, test: (row) => row.stage_id === stage.id },
        { text: `lead_pipeline_id=${stage.pipeline_id}`, test: (row) => row.pipeline_id === stage.pipeline_id },
        { text: `person_id=${person}`, test: (row) => row.person_id === person },
        { text: 'person_id[null]=true', test: (row) => row.person_id === null },
        {
          text: `organization_id[not]=${organization}`,
          test: (row) => personOf(row)?.organization_id !== organization,
        },
        { text: 'expected_close_date[null]=false', test: (row) => row.expected_close_date !== null },
        { text: `custom_attributes[size]=${size}`, test: (row) => row.size === size },
        { text: `custom_attributes[size][not]=${size}`, test: (row) => row.size !== size },
        { text: 'custom_attributes[note][null]=true', test: (row) => row.note === null },
        {
          text: `custom_attributes[budget][gte]=${least / 10_000}`,
          test: (row) => row.budget !== null && row.budget >= least,
        },
      ]
    },
    texts: (_viewer, row) => {
      const person = personOf(row)
      const organization = at(organizations, person?.organization_id ?? null)
      return [row.title, row.description, person?.name ?? null, organization?.name ?? null, ...(person?.emails ?? [])]
    },
  }
  return list
}

function personList({ records, users }: Facts): AnyList {
  const { persons, organizations } = records
  const owners = [...users.keys()]
  const list: ListOracle<PersonRecord> = {
    path: '/contacts/persons',
    rows: persons,
    sees: sightOf(records).persons,
    hasSight: true,
    sorts: {
      ...stamped,
      name: key(({ name }) => name),
      job_title: key((row) => row.job_title),
      organization_name: {
        ...key((row) => at(organizations, row.organization_id)?.name),
        parent: (row) => row.organization_id,
      },
      'custom_attributes.note': own(({ note }) => (note === null ? null : fold(note))),
    },
    filters: (random) => [
      sinceFilter(random, persons.length),
      ownerFilter(random, owners),
      ownerless,
      { text: 'job_title[null]=true', test: (row) => row.job_title === null },
      { text: 'organization_id[null]=false', test: (row) => row.organization_id !== null },
    ],
    texts: (_viewer, row) => [
      row.name,
      row.job_title,
      at(organizations, row.organization_id)?.name ?? null,
      ...row.emails,
    ],
  }
  return list
}

function organizationList({ records, users }: Facts): AnyList {
  const { organizations } = records
  const owners = [...users.keys()]
  const list: ListOracle<OrganizationRecord> = {
    path: '/contacts/organizations',
    rows: organizations,
    sees: sightOf(records).organizations,
    hasSight: true,
    sorts: { ...stamped, name: key(({ name }) => name) },
    filters: (random) => [
      ownerFilter(random, owners),
      ownerless,
      { text: 'country=DE,FR', test: ({ country }) => country === 'DE' || country === 'FR' },
      { text: 'country[not]=DE', test: ({ country }) => country !== 'DE' },
    ],
    texts: (_viewer, row) => [
      row.name,
      ...(row.country === null ? [] : [row.country, 'Road 1', 'Nil', 'Ulm', '89073']),
    ],
  }
  return list
}

function quoteList({ records, users }: Facts): AnyList {
  const { persons, quotes } = records
  const owners = [...users.keys()]
  const personOf = (row: { person_id: number | null }) => at(persons, row.person_id)
  const list: ListOracle<QuoteRecord> = {
    path: '/quotes',
    rows: quotes,
    sees: sightOf(records).quotes,
    hasSight: true,
    sorts: {
      ...stamped,
      subject: key(({ subject }) => subject),
      grand_total: own((row) => row.grand_total),
      expiry_date: own((row) => row.expiry_date),
    },
    filters: (random) => [
      sinceFilter(random, quotes.length),
      ownerFilter(random, owners),
      { text: 'grand_total[lt]=25', test: (row) => row.grand_total < 250_000 },
      { text: 'expiry_date[gte]=2026-05-01', test: (row) => row.expiry_date >= '2026-05-01' },
    ],
    texts: (_viewer, row) => [row.subject, row.description, personOf(row)?.name ?? null],
  }
  return list
}

function productList({ records: { products } }: Facts): AnyList {
  const list: ListOracle<ProductRecord> = {
    path: '/products',
    rows: products,
    sees: () => true,
    hasSight: false,
    sorts: {
      ...stamped,
      sku: key(({ sku }) => sku),
      name: key(({ name }) => name),
      price: own(({ price }) => price),
    },
    filters: () => [{ text: 'price[gt]=10', test: ({ price }) => price > 100_000 }],
    texts: (_viewer, row) => [row.sku, row.name, row.description],
  }
  return list
}

function activityList({ records, users }: Facts): AnyList {
  const { activities } = records
  const sight = sightOf(records)
  const owners = [...users.keys()]
  const list: ListOracle<ActivityRecord> = {
    path: '/activities',
    rows: activities,
    sees: (viewer, row) =>
      sees(viewer, row) ||
      row.participants.some((user) => seesOwner(viewer, user)) ||
      (['leads', 'persons', 'organizations', 'quotes'] as const).some((entity) =>
        row[entity].some((id) => sight[entity](viewer, at<Owned>(records[entity], id))),
      ),
    hasSight: true,
    sorts: {
      ...stamped,
      title: key(({ title }) => title),
      type: own(({ type }) => type),
      is_done: own((row) => row.is_done),
      schedule_from: own((row) => row.schedule_from),
    },
    filters: (random) => {
      const user = random.pick(owners)
      return [
        sinceFilter(random, activities.length),
        ownerFilter(random, owners),
        ownerless,
        { text: 'type=call,note', test: ({ type }) => type === 'call' || type === 'note' },
        { text: 'is_done=true', test: (row) => row.is_done === 1 },
        { text: 'schedule_from[null]=true', test: (row) => row.schedule_from === null },
        { text: `participant_user_id=${user}`, test: ({ participants }) => participants.includes(user) },
      ]
    },
    texts: (_viewer, row) => [row.title, row.comment],
  }
  return list
}

function emailList({ records }: Facts): AnyList {
  const { leads, persons, emails } = records
  const list: ListOracle<EmailRecord> = {
    path: '/emails',
    rows: emails,
    sees: (viewer, row) => {
      const [lead, person] = [at(leads, row.lead_id), at(persons, row.person_id)]
      const isUnfiled = row.source === 'email' && row.user_id === null && !lead && !person
      const isOpen = viewer.folders === null || viewer.folders.has(row.folder)
      return (
        isOpen &&
        (viewer.owners === null ||
          sees(viewer, row) ||
          (lead !== undefined && sees(viewer, lead)) ||
          sightOf(records).persons(viewer, person) ||
          (isUnfiled && (viewer.folders === null || viewer.folders.has('inbox'))))
      )
    },
    hasSight: true,
    sorts: {
      ...stamped,
      subject: key(({ subject }) => subject),
      sent_at: own((row) => row.sent_at),
    },
    filters: (random) => {
      const folder = random.pick(['inbox', 'draft', 'sent', 'trash'])
      return [
        sinceFilter(random, emails.length),
        { text: `folder=${folder}`, test: (row) => row.folder === folder },
        { text: 'is_read=false', test: (row) => row.is_read === 0 },
        { text: 'source=email', test: ({ source }) => source === 'email' },
        { text: 'person_id[null]=true', test: (row) => row.person_id === null },
        { text: 'lead_id[null]=false', test: (row) => row.lead_id !== null },
      ]
    },
    texts: (_viewer, row) => [row.subject, row.text, row.from],
  }
  return list
}

export const listsOf = (facts: Facts): AnyList[] =>
  [leadList, personList, organizationList, quoteList, productList, activityList, emailList].map((make) => make(facts))
