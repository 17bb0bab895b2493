// Presents a record's changes in its timeline. The timeline has one entry for the
// creation and one for each changed field. The entry of a changed field has the old and the new
// value, each with a readable label.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { type Described, describe, type Line } from '../../kernel/history/history.ts'
import type { EntityType } from '../attributes/attribute-set.ts'
import { type CustomReply, presentValues } from '../attributes/replies.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { noLinks } from './links.ts'

type Entry = Schema<'TimelineEntry'>
type Value = Schema<'TimelineValue'>
type Reader = (key: string, value: unknown) => Value

/**
 * Returns empty values for the fields that only activities have. Timeline entries of e-mails and
 * changes have these empty values.
 */
export const emptyActivityFields = (): Pick<
  Entry,
  | 'location'
  | 'schedule_from'
  | 'schedule_to'
  | 'is_all_day'
  | 'due_at'
  | 'remind_at'
  | 'overdue'
  | 'notify'
  | 'external_ids'
  | 'participants'
  | 'files'
  | keyof ReturnType<typeof noLinks>
  | 'parent_id'
> => ({
  external_ids: {},
  location: null,
  schedule_from: null,
  schedule_to: null,
  is_all_day: false,
  due_at: null,
  remind_at: null,
  overdue: false,
  notify: false,
  participants: [],
  files: [],
  ...noLinks(),
  parent_id: null,
})

/**
 * Returns the timeline entries of the given lines of the change log, by line id. The number of
 * queries does not depend on the number of lines.
 */
export async function changeEntries(ctx: Context, entity: string, lines: readonly Line[]): Promise<Map<number, Entry>> {
  if (lines.length === 0) return new Map()
  const described = await describe(ctx, entity, lines)
  const users = await usersOf(
    ctx,
    [...described.values()].flatMap(({ actor }) => actor.id ?? []),
  )
  const read = await createReader(ctx, entity as EntityType, [...described.values()])
  return new Map([...described].map(([id, line]) => [id, entryOf(line, users, read)]))
}

function entryOf(
  { id, created_at, actor, change, isRestored }: Described,
  users: Map<number, Schema<'UserRef'>>,
  read: Reader,
): Entry {
  const created = isRestored ? 'Restored' : 'Created'
  return {
    ...emptyActivityFields(),
    source: 'event',
    id,
    type: 'system',
    title: change ? `Updated ${change.label}` : created,
    comment: null,
    additional: change && {
      attribute: change.key,
      new: read(change.key, change.new),
      old: read(change.key, change.old),
    },
    is_done: true,
    user_id: actor.id,
    user: users.get(actor.id ?? 0) ?? null,
    created_at,
    updated_at: created_at,
    version: 1,
  }
}

/**
 * Returns references to the users, by id. These references ignore visibility. A
 * deleted user has no reference.
 */
async function usersOf(ctx: Context, ids: readonly number[]): Promise<Map<number, Schema<'UserRef'>>> {
  if (ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('users')
    .select(['id', 'name', 'email', 'image_file_id'])
    .where('id', 'in', [...new Set(ids)])
    .execute()
  const refs = rows.map((row) => userRef(row.id, row.name, row.email, pictureUrl(ctx, row.image_file_id)))
  return new Map(refs.flatMap((ref) => (ref ? [[ref.id, ref] as const] : [])))
}

const customPrefix = 'custom_attributes.'

/**
 * Returns a function that converts a changed value to its raw form and readable label. Loads the
 * labels of all changed options in one batch.
 */
async function createReader(ctx: Context, entity: EntityType, described: readonly Described[]): Promise<Reader> {
  const carriers = new Map<string, CustomReply>()
  for (const { change } of described) {
    if (!change?.key.startsWith(customPrefix)) continue
    for (const value of [change.old, change.new].filter(isChoice))
      carriers.set(nameOf(change.key, value), { custom_attributes: { [change.key.slice(customPrefix.length)]: value } })
  }
  if (carriers.size > 0) await presentValues(ctx, entity, [...carriers.values()], ['custom_labels'])
  return (key, value) => {
    const chosen = carriers.get(nameOf(key, value))?.custom_labels?.[key.slice(customPrefix.length)]
    return { value: plainOf(value), label: labelOf(chosen ?? value) }
  }
}

const nameOf = (key: string, value: unknown): string => JSON.stringify([key, value])
const isChoice = (value: unknown): boolean =>
  typeof value === 'number' || (Array.isArray(value) && value.every((each) => typeof each === 'number'))

type Known = Record<string, unknown>
const isObject = (value: unknown): value is Known => typeof value === 'object' && value !== null
const isReference = (value: unknown): value is Known => isObject(value) && typeof value.id === 'number'

/** Replaces each reference in a value with the id of the referenced record. */
function plainOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainOf)
  return isReference(value) ? value.id : (value ?? null)
}

/** Returns the readable text of a value, or null for an empty value. */
function labelOf(value: unknown): string | null {
  if (value === null || value === undefined || value === '') return null
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (Array.isArray(value)) return joinLabels(value)
  if (isReference(value)) return String(value.name ?? value.title ?? value.subject ?? value.email ?? value.id)
  if (!isObject(value)) return String(value)
  // A contact point shows only its value. Other objects, such as addresses, list all their fields.
  return 'value' in value ? labelOf(value.value) : joinLabels(Object.values(value))
}

const joinLabels = (values: readonly unknown[]): string | null =>
  values.flatMap((each) => labelOf(each) ?? []).join(', ') || null
