// The form in which the layouts of other programs are written, and short forms for their rules.
import { closedMark, deletedMark } from '../../find-records/outcomes.ts'
import type { ImportType } from '../../settings.ts'

export interface LayoutRule {
  fields: readonly string[]
  order?: number
  isFallback?: boolean
  label?: string
  /** The header with the label, in the form of `normalizeHeader`. `#` stands for a number. */
  labelColumn?: string
  values?: Readonly<Record<string, string | null>>
  /** The header of the column that groups rows, in the form of `normalizeHeader`. */
  fillDown?: string
}

export interface Layout {
  /** The name that the analysis returns. */
  name: string
  type: ImportType
  /** The file has at least one header of each list. */
  marks: readonly (readonly string[])[]
  /**
   * The rule of each header, in the form of `normalizeHeader`. `#` stands for a number, and `|`
   * separates headers with the same rule.
   */
  columns: Readonly<Record<string, LayoutRule | string | null>>
  constants?: Readonly<Record<string, string>>
}

/** A column that is a part of the name, in the order of title, given, middle and family name. */
export const part = (order: number): LayoutRule => ({ fields: ['name'], order })
export const fallback = (field: string): LayoutRule => ({ fields: [field], isFallback: true })
export const emailAs = (label: string): LayoutRule => ({ fields: ['emails'], label })
export const phoneAs = (label: string): LayoutRule => ({ fields: ['contact_numbers'], label })

/** A date that is the closing time of a closed deal and the expected date of any other deal. */
export const closing: LayoutRule = { fields: ['closed_at', 'expected_close_date'] }
const flag = (value: string): Readonly<Record<string, string | null>> => ({
  ...{ 1: value, true: value, yes: value, checked: value },
  ...{ 0: null, false: null, no: null, unchecked: null },
})
export const isWon: LayoutRule = { fields: ['status'], values: flag('won') }
export const isClosed: LayoutRule = { fields: ['status'], values: flag(closedMark) }
/** Salesforce marks records of its recycle bin. They are left out. */
export const isDeleted: LayoutRule = { fields: ['status'], values: flag(deletedMark) }
export const isLost: LayoutRule = { fields: ['status'], values: flag('lost') }

export const names = {
  'salutation|name prefix|prefix': part(1),
  'first name|given name': part(2),
  'middle name|additional name': part(3),
  'last name|family name': part(4),
  'suffix|name suffix': part(5),
}
