// The installation's own attributes as columns of an export: one each, an address one for each of its parts.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addressColumns, type Cell, type Columns, points } from '../../kernel/resource/csv-cells.ts'
import { type EntityType, ownAttributes } from './set.ts'

interface Reply {
  custom_attributes: unknown
}

type Points = Schema<'ContactPoint'>[]

/** What a stored value of a type looks like in a cell; the types left out are cells as they are. */
const cells: Record<string, (value: never) => Cell> = {
  email: (value: Points) => points(value),
  phone: (value: Points) => points(value),
  multiselect: (value: number[]) => value.join('|'),
  checkbox: (value: number[]) => value.join('|'),
  image: (value: { id: number }) => value.id,
  file: (value: { id: number }) => value.id,
}

/** In the order of the attributes. A subheading has no value and so no column. */
export async function customColumns(ctx: Context, entity: EntityType): Promise<Columns<Reply>> {
  const attributes = await ownAttributes(ctx, entity)
  const valued = attributes.filter(({ type }) => type !== 'subheading')
  return valued.flatMap(({ code, type }): Columns<Reply> => {
    const stored = ({ custom_attributes: values }: Reply): unknown =>
      Object.hasOwn(values as object, code) ? (values as Record<string, unknown>)[code] : null
    if (type === 'address') return addressColumns(code, (reply) => stored(reply) as Schema<'Address'> | null)
    const show = cells[type] as ((value: unknown) => Cell) | undefined
    return [
      {
        name: code,
        cell: (reply) => {
          const value = stored(reply)
          return value === null || !show ? (value as Cell) : show(value)
        },
      },
    ]
  })
}
