// The times at which workflows start: some days after or before the date in a field of a record.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { type Attribute, attributesOf } from '../attributes/attribute-set.ts'
import { leadStatus } from '../leads/change-stage.ts'
import type { Entity } from './comparable-fields.ts'

export type Timing = Schema<'WorkflowTiming'>

/** A field with an index that begins with it and ends with the id. */
export interface TimingField {
  kind: 'date' | 'time'
  column: RawBuilder<string | null>
  /** The custom attribute of the field. */
  attribute?: Attribute
  /** The rows of which the field counts. */
  where?: RawBuilder<boolean>
}

const time = (column: string): TimingField => ({ kind: 'time', column: sql.ref(column) })
const date = (column: string): TimingField => ({ kind: 'date', column: sql.ref(column) })
const isOpen = sql<boolean>`leads.status = ${sql.lit(leadStatus.open)}`

const builtIn: Record<Entity, Readonly<Record<string, TimingField>>> = {
  leads: {
    created_at: time('leads.created_at'),
    expected_close_date: date('leads.expected_close_date'),
    closed_at: time('leads.closed_at'),
    stage_changed_at: time('leads.stage_changed_at'),
    touched_at: { ...time('leads.touched_at'), where: isOpen },
  },
  persons: { created_at: time('persons.created_at') },
  quotes: {
    created_at: time('quotes.created_at'),
    expiry_date: date('quotes.expiry_date'),
    sent_at: time('quotes.sent_at'),
  },
  activities: {
    created_at: time('activities.created_at'),
    due_at: time('activities.due_at'),
    schedule_from: time('activities.schedule_from'),
    schedule_to: time('activities.schedule_to'),
  },
}

/** Returns the field that a timing names; undefined when the records have no such date. */
export async function timingField(ctx: Context, entity: Entity, name: string): Promise<TimingField | undefined> {
  const known = builtIn[entity]
  if (Object.hasOwn(known, name) || entity === 'activities') return known[name]
  const attribute = (await attributesOf(ctx, entity)).find(({ code, isOwn }) => isOwn && code === name)
  if (attribute?.type !== 'date' && attribute?.type !== 'datetime') return undefined
  const column = ctx.services.store.dialect.jsonText(`${entity}.custom_attributes`, name)
  return { kind: attribute.type === 'date' ? 'date' : 'time', column, attribute }
}

export const isTimed = (event: string): boolean => event.endsWith('.due')

/** Adds a validation error unless the timing fits the event and the entity. */
export async function checkTiming(
  ctx: Context,
  { entity, event, timing }: { entity: Entity; event: string; timing: Timing | null },
  errors: ValidationErrors,
): Promise<void> {
  if (!isTimed(event) && timing) errors.invalid('timing', `Only events such as lead.due take a timing.`)
  if (isTimed(event) && !timing) errors.invalid('timing', 'The field is required.')
  if (isTimed(event) && timing && !(await timingField(ctx, entity, timing.field)))
    errors.invalid('timing.field', `Records of ${entity} have no date ${timing.field}.`)
}
