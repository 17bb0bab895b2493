// The settings of an import, in the form in which the steps need them.
import type { Selectable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'

export type ImportRow = Selectable<Tables['imports']>

export type ImportType = Schema<'Import'>['type']
export type ImportAction = Schema<'Import'>['action']

/** Maps the headers of a file to fields or rules. A column with the field null is left out. */
export type Mapping = Schema<'ImportMapping'>
export type ColumnRule = Schema<'ImportColumnRule'>
export type Constants = Schema<'ImportConstants'>

export interface ImportPlan {
  type: ImportType
  action: ImportAction
  mapping: Mapping | null
  constants: Constants | null
  /** The treatment of a name that no record has. */
  unknown: Schema<'ImportUnknownReferences'>
  /** Whether a new person without a name gets one from another column. */
  fillsNames: boolean
  /** Whether a row with invalid optional cells is imported without these cells. */
  omitsCells: boolean
  /**
   * Whether the row's e-mail addresses and telephone numbers replace those of a matched person. If
   * false, they are added.
   */
  replacesLists: boolean
}

export const planOf = (row: ImportRow): ImportPlan => ({
  type: row.type as ImportPlan['type'],
  action: row.action as ImportPlan['action'],
  mapping: mappingOf(row),
  constants: row.constants === null ? null : (JSON.parse(row.constants) as ImportPlan['constants']),
  unknown: row.unknown_references as ImportPlan['unknown'],
  fillsNames: row.missing_names === 'fill',
  omitsCells: row.omit_invalid_cells === 1,
  replacesLists: row.replace_lists === 1,
})

export const mappingOf = ({ mapping }: Pick<ImportRow, 'mapping'>): Mapping | null =>
  mapping === null ? null : (JSON.parse(mapping) as Mapping)

/** Returns the fields of a mapped column. */
export const mappedFields = (mapped: Mapping[string]): readonly string[] =>
  mapped === null ? [] : typeof mapped === 'string' ? [mapped] : mapped.fields
