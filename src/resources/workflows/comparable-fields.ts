// What conditions of workflows can look at (DOMAIN 18.2): by entity, every attribute that can be compared, and how.
import type { Context } from '../../kernel/context.ts'
import { type Attribute, attributesOf } from '../attributes/set.ts'

export type Entity = 'leads' | 'activities' | 'persons' | 'quotes'

/** What is compared: numbers and moments by size, texts by what they hold, choices by being one, lists by holding some. */
export type FieldKind = 'number' | 'date' | 'datetime' | 'text' | 'boolean' | 'choice' | 'list'

export interface ComparableField {
  kind: FieldKind
  /** The attribute whose values are compared; built-in facts without one have fixed choices, or refer to a table. */
  attribute?: Attribute
  choices?: readonly (string | number)[]
  lookup?: 'users'
  /** Elements are ids of tags. */
  tags?: true
}

const sizes = ['==', '!=', '>=', '<=', '>', '<', 'changed_to'] as const
const holds = ['{}', '!{}'] as const

export const operatorsByKind: Record<FieldKind, readonly string[]> = {
  number: sizes,
  date: sizes,
  datetime: sizes,
  text: ['==', '!=', ...holds, 'changed_to'],
  boolean: ['==', '!=', 'changed_to'],
  choice: ['==', '!=', 'changed_to'],
  list: [...holds, 'changed_to'],
}

const kinds: Partial<Record<Attribute['type'], FieldKind>> = {
  text: 'text',
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

/** Facts of an entity that are no attributes. */
const more: Record<Entity, Readonly<Record<string, ComparableField>>> = {
  leads: { status: { kind: 'choice', choices: [1, 2, 3] }, tag_ids: { kind: 'list', tags: true } },
  persons: {},
  quotes: {},
  activities: {
    title: { kind: 'text' },
    type: { kind: 'list', choices: ['note', 'call', 'meeting', 'lunch', 'file'] },
    location: { kind: 'text' },
    comment: { kind: 'text' },
    schedule_from: { kind: 'datetime' },
    schedule_to: { kind: 'datetime' },
    user_id: { kind: 'choice', lookup: 'users' },
    is_done: { kind: 'boolean' },
  },
}

/** By code, all that conditions on records of the entity can look at. */
export async function comparableFields(ctx: Context, entity: Entity): Promise<ReadonlyMap<string, ComparableField>> {
  const attributes = entity === 'activities' ? [] : await attributesOf(ctx, entity)
  const found = attributes.flatMap((attribute): [string, ComparableField][] => {
    const kind = isNumeric(attribute) ? 'number' : kinds[attribute.type]
    return kind ? [[attribute.code, { kind, attribute }]] : []
  })
  return new Map([...found, ...Object.entries(more[entity])])
}

export { attributesOf }
