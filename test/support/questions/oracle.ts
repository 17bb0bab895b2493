// Answers a question by the replies of the lists alone. It knows no table and no SQL.
import { amounts, counts, days, type Json, moments, type Type, titles } from './random.ts'
import type { World } from './world.ts'

/** How the oracle compares a field, and where it reads the value in a reply. */
export interface Known {
  kind: 'text' | 'number' | 'day' | 'time' | 'flag' | 'ids' | 'exact'
  of: (record: Json) => any
  values: readonly any[]
  /** The contract has no `is_empty` for the field. */
  isNeverEmpty?: true
}
type Entry = [string, Known]

const plain = (kind: Known['kind'], name: string, values: readonly any[]): Entry => [
  name,
  { kind, values, of: (record) => record[name] },
]
const filled = (kind: Known['kind'], name: string, values: readonly any[]): Entry => [
  name,
  { kind, values, of: (record) => record[name], isNeverEmpty: true },
]
/** A field of linked records, of which one must meet the condition. */
const linked = (name: string, values: readonly any[], of: Known['of']): Entry => [name, { kind: 'ids', values, of }]
const ids = (list: readonly Json[] | undefined): number[] => (list ?? []).map(({ id }) => id)
const times = [...days, ...moments]

const common: Entry[] = [
  plain('exact', 'id', [1, 5, 9, 40]),
  plain('time', 'created_at', times),
  plain('time', 'updated_at', times),
]
const tags = linked('tag_id', [1, 2, 9], (record) => ids(record.tags))
const external = linked('external_id', ['erp:X-3', 'erp:X-4', 'erp:X-9', 'erp:none'], ({ external_ids }) =>
  Object.entries(external_ids).map(([source, id]) => `${source}:${id}`),
)
const named = (name: string): Entry => plain('text', name, titles)
const numbered = titles.map((title, n) => `${title} ${n}`)

export const known: Record<Type, Map<string, Known>> = {
  leads: new Map<string, Known>([
    ...common,
    tags,
    external,
    named('title'),
    filled('exact', 'status', [1, 2, 3]),
    plain('exact', 'user_id', [1, 2, 7]),
    plain('exact', 'person_id', [1, 2, 3, 4]),
    plain('exact', 'lead_source_id', [1, 2]),
    plain('exact', 'lead_type_id', [1, 2]),
    plain('exact', 'lead_pipeline_id', [1, 2]),
    plain('exact', 'lead_pipeline_stage_id', [1, 2, 5]),
    ['stage_code', { kind: 'text', values: ['new', 'won', 'LOST', 'prospect'], of: ({ stage }) => stage.code }],
    linked('product_id', [1, 2], ({ products }) => products.map((each: Json) => each.product_id)),
    plain('number', 'lead_value', amounts),
    plain('day', 'expected_close_date', days),
    plain('time', 'closed_at', times),
    plain('time', 'stage_changed_at', times),
    plain('flag', 'is_rotten', [true, false]),
    ['organization_id', { kind: 'exact', values: [1, 2, 3], of: ({ organization }) => organization?.id ?? null }],
  ]),
  persons: new Map<string, Known>([
    ...common,
    tags,
    external,
    plain('text', 'name', numbered),
    named('job_title'),
    plain('text', 'language', ['de', 'EN-gb', 'fr']),
    plain('exact', 'user_id', [1, 2]),
    plain('exact', 'organization_id', [1, 2, 3, 4, 5]),
    plain('flag', 'subscribed', [true, false]),
    linked('email', ['p1@example.com', 'P2@example.com'], ({ emails }) => emails.map(({ value }: Json) => value)),
    linked('phone', ['+49 30 123451', '+49 30 123454'], (record) =>
      record.contact_numbers.map(({ value }: Json) => value),
    ),
  ]),
  organizations: new Map<string, Known>([
    ...common,
    tags,
    external,
    plain('text', 'name', numbered),
    plain('exact', 'user_id', [1, 2]),
    linked('country', ['GB', 'de', 'FR'], ({ address }) => [address?.country ?? []].flat()),
  ]),
  quotes: new Map<string, Known>([
    ...common,
    tags,
    external,
    named('subject'),
    plain('exact', 'user_id', [1, 2, 7]),
    plain('exact', 'person_id', [1, 2, 3, 4]),
    linked('lead_id', [1, 2, 3, 21, 22], ({ leads }) => ids(leads)),
    linked('product_id', [1, 2, 9], ({ items }) => items.map((each: Json) => each.product_id)),
    filled('exact', 'status', ['draft', 'sent', 'accepted', 'declined', 'expired']),
    plain('text', 'number', ['Q-2026-0001', 'q-2026-0002', '0003', 'Q']),
    plain('exact', 'revises_id', [1, 2, 3, 4, 5]),
    plain('exact', 'revised_by_id', [4, 5, 6, 7, 8]),
    plain('time', 'sent_at', times),
    plain('flag', 'is_expired', [true, false]),
    plain('number', 'subtotal', amounts),
    plain('number', 'discount_amount', [0, 10, 482.15]),
    plain('number', 'tax_amount', [0, 18, 20]),
    plain('number', 'grand_total', amounts),
    plain('day', 'expiry_date', days),
  ]),
  products: new Map<string, Known>([
    ...common,
    tags,
    external,
    named('name'),
    plain('text', 'sku', ['s-Ä-1', 'S-b', 'S-c-3', 'ä-1']),
    plain('number', 'price', amounts),
    plain('number', 'quantity', amounts),
    filled('number', 'in_stock', counts),
    filled('number', 'available', counts),
    plain('flag', 'discontinued', [true, false]),
    linked('warehouse_id', [1, 2], ({ inventories }) => inventories.map((each: Json) => each.warehouse_id)),
  ]),
  activities: new Map<string, Known>([
    ...common,
    external,
    filled('exact', 'type', ['call', 'meeting', 'lunch', 'task', 'note', 'file']),
    plain('flag', 'is_done', [true, false]),
    plain('exact', 'user_id', [1, 2, 7]),
    ...['lead', 'person', 'organization', 'product', 'warehouse', 'quote'].map((noun) =>
      linked(`${noun}_id`, [1, 2, 3], (record) => record[`${noun}_ids`]),
    ),
    ...['user', 'person'].map((noun) =>
      linked(`participant_${noun}_id`, [1, 2, 3], ({ participants }) =>
        participants.flatMap((each: Json) => each[noun]?.id ?? []),
      ),
    ),
    plain('time', 'schedule_from', times),
    plain('time', 'schedule_to', times),
    plain('time', 'due_at', times),
    plain('flag', 'overdue', [true, false]),
  ]),
  emails: new Map<string, Known>([
    ...common,
    external,
    tags,
    linked('folder', ['inbox', 'starred', 'draft', 'trash'], ({ folders }) => folders),
    filled('exact', 'status', ['draft', 'queued', 'sent', 'failed', 'received', 'bounced']),
    plain('flag', 'is_read', [true, false]),
    filled('exact', 'source', ['web', 'email']),
    filled('exact', 'sender_type', ['user', 'person']),
    plain('exact', 'person_id', [1, 2, 3, 4]),
    plain('exact', 'lead_id', [1, 2, 3, 4]),
    plain('exact', 'parent_id', [1, 2, 3, 4]),
    plain('exact', 'thread_id', [1, 2, 3, 4]),
    linked('message_id', ['none@example.com'], ({ message_id }) => [message_id]),
    plain('exact', 'user_id', [1, 2, 7]),
    ['has_attachments', { kind: 'flag', values: [true, false], of: ({ attachments }) => attachments.length > 0 }],
    ['is_root', { kind: 'flag', values: [true, false], of: ({ parent_id }) => parent_id === null }],
    plain('time', 'sent_at', times),
  ]),
}

/** The related records of each type: their type, and how a reply names them. */
export const related: Record<Type, Record<string, [Type, (record: Json) => readonly (number | null | undefined)[]]>> = {
  leads: {
    person: ['persons', ({ person_id }) => [person_id]],
    organization: ['organizations', ({ organization }) => [organization?.id]],
  },
  persons: { organization: ['organizations', ({ organization_id }) => [organization_id]] },
  organizations: {},
  quotes: { person: ['persons', ({ person_id }) => [person_id]], lead: ['leads', ({ leads }) => ids(leads)] },
  products: {},
  activities: {
    lead: ['leads', ({ lead_ids }) => lead_ids],
    person: ['persons', ({ person_ids }) => person_ids],
    organization: ['organizations', ({ organization_ids }) => organization_ids],
  },
  emails: { person: ['persons', ({ person_id }) => [person_id]], lead: ['leads', ({ lead_id }) => [lead_id]] },
}

/** The custom attributes of a type, with the ids of its options. */
export const customs = ({ options }: World, type: Type): Record<string, [Known['kind'], readonly any[]]> => ({
  c_text: ['exact', titles],
  c_price: ['number', amounts],
  c_number: ['number', counts],
  c_boolean: ['flag', [true, false]],
  c_select: ['exact', options[type]?.select ?? []],
  c_multiselect: ['ids', options[type]?.multiselect ?? []],
  c_date: ['day', days],
  c_datetime: ['time', times],
})

const lower = (text: unknown): unknown => (typeof text === 'string' ? text.toLowerCase() : text)
const folded = (text: string): string =>
  text
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .replace(/ø/g, 'o')
    .normalize('NFD')
    .replace(/[\u0300-\u036f']/g, '')

export const bounds = {
  gt: (a: any, b: any) => a > b,
  gte: (a: any, b: any) => a >= b,
  lt: (a: any, b: any) => a < b,
  lte: (a: any, b: any) => a <= b,
}
const endOfDay: Record<string, string> = {
  '2026-03-28': moments[1] as string,
  '2026-03-29': moments[3] as string,
  '2026-03-30': '2026-03-30T22:00:00.000Z',
  '2027-01-01': '2027-01-01T23:00:00.000Z',
}
const startOfDay: Record<string, string> = {
  '2026-03-28': '2026-03-27T23:00:00.000Z',
  '2026-03-29': moments[1] as string,
  '2026-03-30': moments[3] as string,
  '2027-01-01': '2026-12-31T23:00:00.000Z',
}

/** Compares a moment with a day: every moment of the day is equal to it. */
function timeMeets(value: string, operator: keyof typeof bounds, bound: string): boolean {
  const at = Date.parse(value)
  const [from, to] = [Date.parse(startOfDay[bound] ?? bound), Date.parse(endOfDay[bound] ?? bound)]
  if (startOfDay[bound] === undefined) return bounds[operator](at, from)
  return { gt: at >= to, gte: at >= from, lt: at < from, lte: at < to }[operator]
}

function meets(kind: Known['kind'], value: any, condition: any): boolean {
  const test = typeof condition === 'object' && !Array.isArray(condition) ? condition : { in: [condition] }
  const isEmpty = value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  return Object.entries(test).every(([operator, wanted]: [string, any]) => {
    if (operator === 'is_empty') return isEmpty === wanted
    if (kind === 'ids') return wanted.some((each: any) => (value ?? []).map(lower).includes(lower(each)))
    if (isEmpty) return false
    if (operator === 'in') return wanted.map(lower).includes(lower(value))
    if (operator === 'contains') return folded(value).includes(folded(wanted.trim()))
    if (operator === 'starts_with') return folded(value).startsWith(folded(wanted.trim()))
    if (kind === 'time') return timeMeets(value, operator as keyof typeof bounds, wanted)
    return bounds[operator as keyof typeof bounds](value, wanted)
  })
}

/** The records that a caller sees, by type. */
export type Seen = Record<Type, ReadonlySet<number>>

/** Returns whether a record meets a `where`. Of related records, only those in view count. */
export function oracle(world: World, seen: Seen, type: Type, record: Json, where: Json): boolean {
  const asked = (each: Json): boolean => oracle(world, seen, type, record, each)
  return Object.entries(where).every(([name, sent]): boolean => {
    if (name === 'and') return sent.every(asked)
    if (name === 'or') return sent.some(asked)
    if (name === 'not') return !sent.some(asked)
    if (name === 'custom_attributes')
      return Object.entries(sent).every(([code, each]) =>
        meets(customs(world, type)[code]?.[0] ?? 'exact', record.custom_attributes[code], each),
      )
    const to = related[type][name]
    if (to)
      return to[1](record).some((id) => {
        const other = world.records[to[0]].find((each) => each.id === id)
        return other !== undefined && seen[to[0]].has(other.id) && oracle(world, seen, to[0], other, sent)
      })
    const { kind, of } = known[type].get(name) as Known
    return meets(kind, of(record), sent)
  })
}
