// Computes and saves changes to the options of an attribute.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { fold } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import type { AttributeOption } from './attribute-set.ts'

interface PlannedOption extends Omit<AttributeOption, 'id'> {
  /** Null for a new option. */
  id: number | null
}

export interface OptionPlan {
  options: PlannedOption[]
  removed: AttributeOption[]
}

/**
 * Compares the stored options with the options in the body. Returns the options after the change
 * and the removed options. Adds problems of the body to `errors`. Without `sent`, all options stay
 * unchanged.
 */
export function planOptions(
  present: readonly AttributeOption[],
  sent: readonly Schema<'AttributeOptionInput'>[] | undefined,
  errors: ValidationErrors,
): OptionPlan {
  if (sent === undefined) return { options: [...present], removed: [] }
  const taken = { ids: new Set<number>(), names: new Set<string>() }
  const options = sent.map((input, index): PlannedOption => {
    const refuse = (field: string, sentence: string): void => errors.invalid(`options.${index}.${field}`, sentence)
    const { id, name: called } = input
    const row =
      id === undefined
        ? present.find(({ name }) => called !== undefined && fold(name) === fold(called))
        : present.find((option) => option.id === id)
    if (id !== undefined && !row) refuse('id', `This attribute has no option with id ${id}.`)
    if (!row && id === undefined && called === undefined) refuse('name', 'The field is required.')
    const name = called ?? row?.name ?? ''
    if (row && taken.ids.has(row.id)) refuse(id === undefined ? 'name' : 'id', 'This option occurs twice.')
    else if (name !== '' && taken.names.has(fold(name))) refuse('name', `The name ${name} occurs twice.`)
    if (row) taken.ids.add(row.id)
    taken.names.add(fold(name))
    return { id: row?.id ?? null, name, sort_order: input.sort_order ?? index + 1 }
  })
  return { options, removed: present.filter(({ id }) => !taken.ids.has(id)) }
}

export async function saveOptions(
  { db }: Context,
  attributeId: number,
  present: readonly AttributeOption[],
  { options, removed }: OptionPlan,
): Promise<void> {
  if (removed.length > 0)
    await db
      .deleteFrom('attribute_options')
      .where(
        'id',
        'in',
        removed.map(({ id }) => id),
      )
      .execute()
  const was = new Map(present.map((option) => [option.id, option]))
  // Two options may swap names. Writing the new names one by one would violate the unique index, so
  // all renamed options first get a temporary key.
  for (const { id, name } of options) {
    if (id === null || was.get(id)?.name === name) continue
    await db
      .updateTable('attribute_options')
      .set({ name_key: `\u0001${id}` })
      .where('id', '=', id)
      .execute()
  }
  for (const { id, name, sort_order } of options) {
    const columns = { name, name_key: textKey(name), sort_order }
    const row = id === null ? undefined : was.get(id)
    if (id === null)
      await db
        .insertInto('attribute_options')
        .values({ ...columns, attribute_id: attributeId })
        .execute()
    else if (row?.name !== name || row.sort_order !== sort_order)
      await db.updateTable('attribute_options').set(columns).where('id', '=', id).execute()
  }
}
