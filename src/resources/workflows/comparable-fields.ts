// The fields of each entity that workflow conditions can compare, and how their values compare.
import { oldNamesOf } from '../../contract/old-names.ts'
import type { Context } from '../../kernel/context.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { isRescheduled } from '../activities/invitations.ts'
import { type Attribute, attributesOf } from '../attributes/attribute-set.ts'

export type Entity = 'leads' | 'activities' | 'persons' | 'quotes'

/**
 * How the values of a field compare: numbers and dates by order, texts by content, choices by
 * equality, and lists by membership.
 */
export type FieldKind = 'number' | 'date' | 'datetime' | 'text' | 'boolean' | 'choice' | 'list'

export interface ComparableField {
  kind: FieldKind
  /** The attribute whose values are compared. Absent for the fields in `builtInFields`. */
  attribute?: Attribute
  choices?: readonly (string | number)[]
  lookup?: 'users'
  /** Whether the elements of the list are tag ids. */
  tags?: true
  /** The key of the record, when the condition names the field by its old name (`x-alias`). */
  key?: string
  /** Derives the value from the event: the record before, null for a new record, and after. */
  derived?: (before: Snapshot | null, after: Snapshot) => boolean
}

const orderOperators = ['==', '!=', '>=', '<=', '>', '<', 'changed_to'] as const
const containsOperators = ['{}', '!{}'] as const

export const operatorsByKind: Record<FieldKind, readonly string[]> = {
  number: orderOperators,
  date: orderOperators,
  datetime: orderOperators,
  text: ['==', '!=', ...containsOperators, 'changed_to'],
  boolean: ['==', '!=', 'changed_to'],
  choice: ['==', '!=', 'changed_to'],
  list: [...containsOperators, 'changed_to'],
}

const kinds: Partial<Record<Attribute['type'], FieldKind>> = {
  text: 'text',
  url: 'text',
  number: 'number',
  price: 'number',
  date: 'date',
  datetime: 'datetime',
  boolean: 'boolean',
  select: 'choice',
  lookup: 'choice',
  multiselect: 'list',
  checkbox: 'list',
  email: 'list',
  phone: 'list',
}

const isNumeric = ({ type, validation }: Attribute): boolean =>
  type === 'text' && (validation === 'numeric' || validation === 'decimal')

/** The comparable fields of each entity that are not attributes. */
const builtInFields: Record<Entity, Readonly<Record<string, ComparableField>>> = {
  leads: { status: { kind: 'choice', choices: [1, 2, 3] }, tag_ids: { kind: 'list', tags: true } },
  persons: {},
  quotes: {
    status: { kind: 'choice', choices: ['draft', 'sent', 'accepted', 'declined', 'expired'] },
    number: { kind: 'text' },
    revision: { kind: 'number' },
    sent_at: { kind: 'datetime' },
    tag_ids: { kind: 'list', tags: true },
  },
  activities: {
    title: { kind: 'text' },
    type: { kind: 'list', choices: ['note', 'call', 'meeting', 'lunch', 'task', 'file'] },
    location: { kind: 'text' },
    comment: { kind: 'text' },
    schedule_from: { kind: 'datetime' },
    schedule_to: { kind: 'datetime' },
    due_at: { kind: 'datetime' },
    user_id: { kind: 'choice', lookup: 'users' },
    is_done: { kind: 'boolean' },
    notify: { kind: 'boolean' },
    is_rescheduled: { kind: 'boolean', derived: isRescheduled },
  },
}

export async function comparableFields(ctx: Context, entity: Entity): Promise<ReadonlyMap<string, ComparableField>> {
  const attributes = entity === 'activities' ? [] : await attributesOf(ctx, entity)
  const found = attributes.flatMap((attribute): [string, ComparableField][] => {
    const kind = isNumeric(attribute) ? 'number' : kinds[attribute.type]
    return kind ? [[attribute.code, { kind, attribute }]] : []
  })
  const fields = new Map([...found, ...Object.entries(builtInFields[entity])])
  for (const [key, old] of oldNamesIn(ctx, entity)) {
    const field = fields.get(key)
    if (field && !fields.has(old)) fields.set(old, { ...field, key })
  }
  return fields
}

/** Returns the old names of the entity's keys, which stored workflows may still use. */
export function oldNamesIn({ services }: Context, entity: string): ReadonlyMap<string, string> {
  const operation = services.resources.get(entity)?.getOperation
  return operation ? oldNamesOf(services.contract, operation) : new Map()
}
