// Defines the export columns of custom attributes: one column per attribute, or one per part of an
// address. For options and records, a second column `<code>.name` has the names from
// `custom_labels`.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  addressColumns,
  type Cell,
  type CsvColumn,
  type CsvColumns,
  listColumn,
  points,
} from '../../kernel/resource/csv-cells.ts'
import { customAttributes, type EntityType } from './attribute-set.ts'
import { hasOptions } from './types.ts'

interface Reply {
  custom_attributes: unknown
  custom_labels?: unknown
}

type Points = Schema<'ContactPoint'>[]

/**
 * Converts a value to a CSV cell, by attribute type. Values of types that are missing here need no
 * conversion.
 */
const cells: Record<string, (value: never) => Cell> = {
  email: (value: Points) => points(value),
  phone: (value: Points) => points(value),
  multiselect: (value: number[]) => value.join('|'),
  checkbox: (value: number[]) => value.join('|'),
  image: (value: { id: number }) => value.id,
  file: (value: { id: number }) => value.id,
}

const formats: Record<string, CsvColumn<Reply>['format']> = { date: 'date', datetime: 'date-time' }

/**
 * Returns the export columns, in the order of the attributes. A subheading has no column because it
 * has no value.
 */
export async function customColumns(ctx: Context, entity: EntityType): Promise<CsvColumns<Reply>> {
  const attributes = await customAttributes(ctx, entity)
  const valued = attributes.filter(({ type }) => type !== 'subheading')
  return valued.flatMap(({ code, type, lookup }): CsvColumns<Reply> => {
    const own = (values: unknown): unknown =>
      Object.hasOwn(values as object, code) ? (values as Record<string, unknown>)[code] : null
    const stored = ({ custom_attributes: values }: Reply): unknown => own(values)
    if (type === 'address') return addressColumns(code, (reply) => stored(reply) as Schema<'Address'> | null)
    const show = cells[type] as ((value: unknown) => Cell) | undefined
    const column: CsvColumn<Reply> = {
      name: code,
      format: formats[type],
      cell: (reply) => {
        const value = stored(reply)
        return value === null || !show ? (value as Cell) : show(value)
      },
    }
    if (lookup === null && !hasOptions(type)) return [column]
    const named = listColumn<Reply>(`${code}.name`, ({ custom_labels: labels }) =>
      [(own(labels) ?? []) as string | string[]].flat(),
    )
    return [column, { ...named, include: 'custom_labels' }]
  })
}
