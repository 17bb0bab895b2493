// Defines the columns of each import type (DOMAIN 21.1): built-in columns and custom attributes.
// Imports ignore columns that only exports have. `readHeader` checks the header of a file against
// these columns.
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addressParts } from '../../kernel/values/address.ts'
import { type Attribute, customAttributes } from '../attributes/attribute-set.ts'
import { leadColumns } from '../leads/columns.ts'
import { organizationColumns } from '../organizations/columns.ts'
import { personColumns } from '../persons/columns.ts'
import { productColumns } from '../products/columns.ts'
import {
  type CellReader,
  optionListReader,
  optionReader,
  readContactPoints,
  readMoment,
  readNames,
  readProductLines,
  readText,
  readWholeNumber,
} from './cell-readers.ts'

export type ImportType = Schema<'Import'>['type']
export type ImportAction = Schema<'Import'>['action']

export interface ImportColumn {
  name: string
  /**
   * The path in the body. `tags`, `person_email` and the `id` of a lead are not sent in the body
   * but handled separately.
   */
  path: readonly string[]
  read: CellReader
  /** The value that the cell text NULL sets: null, or an empty list for a list column. */
  cleared: null | readonly never[]
}

const column = (name: string, read: CellReader = readText, path: readonly string[] = [name]): ImportColumn => ({
  name,
  path,
  read,
  cleared: null,
})
const list = (name: string, read: CellReader, path: readonly string[] = [name]): ImportColumn => ({
  ...column(name, read, path),
  cleared: [],
})
const parts = (name: string, path: readonly string[]): ImportColumn[] =>
  addressParts.map((part) => column(`${name}.${part}`, readText, [...path, part]))

const builtIn: Record<ImportType, readonly ImportColumn[]> = {
  persons: [
    column('name'),
    list('emails', readContactPoints),
    list('contact_numbers', readContactPoints),
    column('organization_id', readWholeNumber),
    column('organization_name'),
    column('job_title'),
    column('user_id', readWholeNumber),
    column('subscribed'),
    list('tags', readNames),
  ],
  organizations: [
    column('name'),
    ...parts('address', ['address']),
    column('user_id', readWholeNumber),
    list('tags', readNames),
  ],
  products: [
    column('sku'),
    column('name'),
    column('description'),
    column('quantity'),
    column('price'),
    list('tags', readNames),
  ],
  leads: [
    column('id', readWholeNumber),
    ...['title', 'description', 'lead_value', 'lost_reason'].map((name) => column(name)),
    column('closed_at', readMoment),
    column('user_id', readWholeNumber),
    column('person_id', readWholeNumber),
    column('person_email'),
    ...['lead_source_id', 'lead_type_id', 'lead_pipeline_id', 'lead_pipeline_stage_id'].map((name) =>
      column(name, readWholeNumber),
    ),
    column('expected_close_date'),
    list('product', readProductLines, ['products']),
    list('tags', readNames),
  ],
}

/** The column that identifies a row's record, by type and action. */
export const keyColumns: Record<ImportType, Record<ImportAction, string>> = {
  persons: { append: 'emails', delete: 'emails' },
  organizations: { append: 'name', delete: 'name' },
  products: { append: 'sku', delete: 'sku' },
  leads: { append: 'title', delete: 'id' },
}

/**
 * Returns the columns of which a file needs at least one. A person may have no e-mail address and
 * be matched by a telephone number.
 */
const requiredColumns = (type: ImportType, action: ImportAction): readonly string[] =>
  type === 'persons' && action === 'append' ? ['emails', 'contact_numbers', 'name'] : [keyColumns[type][action]]

function attributeColumns(attribute: Attribute): ImportColumn[] {
  const { code, type, lookup, options } = attribute
  const path = ['custom_attributes', code]
  const choices = lookup === null ? options : []
  switch (type) {
    case 'subheading':
      return []
    case 'address':
      return parts(code, path)
    case 'email':
    case 'phone':
      return [column(code, readContactPoints, path)]
    case 'select':
    case 'lookup':
      return [column(code, optionReader(choices), path)]
    case 'multiselect':
    case 'checkbox':
      return [column(code, optionListReader(choices), path)]
    case 'datetime':
      return [column(code, readMoment, path)]
    case 'image':
    case 'file':
      return [column(code, readWholeNumber, path)]
    default:
      return [column(code, readText, path)]
  }
}

/** Returns the columns of the custom attributes. */
export const customImportColumns = async (ctx: Context, type: ImportType): Promise<ImportColumn[]> =>
  (await customAttributes(ctx, type)).flatMap(attributeColumns)

/**
 * Returns all columns of a type, by name. A built-in column replaces a custom attribute of the same
 * name.
 */
export async function importColumns(ctx: Context, type: ImportType): Promise<Map<string, ImportColumn>> {
  const all = [...(await customImportColumns(ctx, type)), ...builtIn[type]]
  return new Map(all.map((each) => [each.name, each]))
}

const exportColumns = {
  persons: personColumns,
  organizations: organizationColumns,
  products: productColumns,
  leads: leadColumns,
} satisfies Record<ImportType, unknown>

export interface HeaderFault {
  column: string | null
  message: string
}

/**
 * Returns the columns of a file in order, with null for each ignored column, and the errors of the
 * header.
 */
export async function readHeader(
  ctx: Context,
  { type, action }: { type: ImportType; action: ImportAction },
  cells: readonly string[],
): Promise<{ columns: (ImportColumn | null)[]; faults: HeaderFault[] }> {
  const known = await importColumns(ctx, type)
  // Error reports contain a column `error`, and users import corrected reports. The column is
  // ignored, like columns that only exports have.
  const passed = new Set(['error', ...(await exportColumns[type](ctx)).map(({ name }) => name)])
  const key = keyColumns[type][action]
  const faults: HeaderFault[] = []
  const seen = new Set<string>()
  const columns = cells.map((cell, index): ImportColumn | null => {
    const name = cell.trim()
    const told = name.length > maxToldLength ? `${name.slice(0, maxToldLength)}…` : name
    if (faults.length >= maxFaults) return null
    if (name === '') faults.push({ column: null, message: `Column ${index + 1} has no name.` })
    else if (seen.has(name)) faults.push({ column: told, message: `The column ${told} occurs twice.` })
    else if (!known.has(name) && !passed.has(name))
      faults.push({ column: told, message: `Unknown column ${told}.${didYouMean(name, known.keys())}` })
    seen.add(name)
    // A deletion uses only the key column and ignores all others.
    return action === 'delete' && name !== key ? null : (known.get(name) ?? null)
  })
  const wanted = requiredColumns(type, action)
  if (faults.length < maxFaults && !wanted.some((each) => seen.has(each)))
    faults.push({ column: key, message: `The column ${wanted.join(' or ')} is missing.` })
  return { columns, faults }
}

const maxFaults = 100
/** The maximum length of a column name in an error message, in characters. */
const maxToldLength = 100
