// Defines the columns of each import type: built-in columns and custom attributes.
// Imports ignore columns that only exports have. `readHeader` checks the header of a file against
// these columns.
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addressParts } from '../../kernel/values/address.ts'
import { fold } from '../../kernel/values/format.ts'
import { type Attribute, attributesOf, customAttributes } from '../attributes/attribute-set.ts'
import { leadColumns } from '../leads/columns.ts'
import { organizationColumns } from '../organizations/columns.ts'
import { personColumns } from '../persons/columns.ts'
import { productColumns } from '../products/columns.ts'
import type { ImportPlan } from './apply-row.ts'
import { readFlag } from './cell-formats.ts'
import {
  type CellReader,
  optionListReader,
  optionReader,
  readAddresses,
  readCountryCode,
  readDate,
  readDecimal,
  readLines,
  readMoment,
  readNames,
  readNumbers,
  readProductLines,
  readText,
  readWholeNumber,
} from './cell-readers.ts'

export type ImportType = Schema<'Import'>['type']
export type ImportAction = Schema<'Import'>['action']

/** Maps the headers of a file to fields or rules. A column with the field null is left out. */
export type Mapping = Schema<'ImportMapping'>
export type ColumnRule = Schema<'ImportColumnRule'>
export type Constants = Schema<'ImportConstants'>

/** Returns the fields of a mapped column. */
export const mappedFields = (mapped: Mapping[string]): readonly string[] =>
  mapped === null ? [] : typeof mapped === 'string' ? [mapped] : mapped.fields

export interface ImportColumn {
  name: string
  /** The display name of a custom attribute; `name` contains its code. */
  label?: string
  /**
   * The path in the body. `tags`, `person_email`, `person_phone` and the `id` of a lead are not
   * sent in the body but handled separately.
   */
  path: readonly string[]
  read: CellReader
  /** The value that the cell text NULL sets: null, or an empty list for a list column. */
  cleared: null | readonly never[]
  /** Whether the value must be unique. An invalid unique cell is never omitted. */
  isUnique?: boolean
  /** Whether the cell names a record, which references.ts finds. */
  isReference?: boolean
}

/** A column of a file. Users know the column by its header, and a constant by its field. */
export interface FileColumn extends ImportColumn {
  header: string
  /** The place of the cell in its row. A constant has none. */
  index: number
  /** The value in the rows in which no column fills the field. */
  constant?: string
  order: number
  isFallback: boolean
  pointLabel?: { text: string | null; index: number | null }
  values?: ReadonlyMap<string, string | null>
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
  addressParts.map((part) =>
    column(`${name}.${part}`, part === 'country' ? readCountryCode : readText, [...path, part]),
  )
const reference = (name: string): ImportColumn => ({ ...column(name, readText, ['names', name]), isReference: true })

const builtIn: Record<ImportType, readonly ImportColumn[]> = {
  persons: [
    column('name'),
    list('emails', readAddresses),
    list('contact_numbers', readNumbers),
    column('organization_id', readWholeNumber),
    column('organization_name'),
    column('job_title'),
    column('user_id', readWholeNumber),
    column('subscribed', readFlag),
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
    column('description', readLines),
    column('quantity', readDecimal),
    column('price', readDecimal),
    list('tags', readNames),
  ],
  leads: [
    column('id', readWholeNumber),
    column('title'),
    column('description'),
    column('lead_value', readDecimal),
    column('lost_reason'),
    column('closed_at', readMoment),
    column('user_id', readWholeNumber),
    column('person_id', readWholeNumber),
    column('person_email'),
    list('person_phone', readNumbers),
    ...['lead_source_id', 'lead_type_id', 'lead_pipeline_id', 'lead_pipeline_stage_id'].map((name) =>
      column(name, readWholeNumber),
    ),
    column('expected_close_date', readDate),
    list('product', readProductLines, ['products']),
    list('tags', readNames),
  ],
}

/**
 * The columns that name a record instead of its id. A custom attribute of the same code replaces
 * the column.
 */
const references: Record<ImportType, readonly ImportColumn[]> = {
  persons: [reference('user')],
  organizations: [reference('user')],
  products: [],
  leads: ['user', 'person', 'organization_name', 'pipeline', 'stage', 'status', 'source', 'type'].map(reference),
}

/**
 * The key column of each type and action. The key identifies the record of a row, except `title`,
 * which new leads require.
 */
export const keyColumns: Record<ImportType, Record<ImportAction, string>> = {
  persons: { append: 'emails', delete: 'emails' },
  organizations: { append: 'name', delete: 'name' },
  products: { append: 'sku', delete: 'sku' },
  leads: { append: 'title', delete: 'id' },
}

/**
 * Returns the accepted key fields when the file has none of them, otherwise null. Persons without
 * an e-mail address are matched by telephone number.
 */
export function missingColumns(
  { type, action }: { type: ImportType; action: ImportAction },
  present: readonly (string | null)[],
): readonly string[] | null {
  const needed =
    type === 'persons' && action === 'append' ? ['emails', 'contact_numbers', 'name'] : [keyColumns[type][action]]
  return needed.some((field) => present.includes(field)) ? null : needed
}

function attributeColumns({ code, type, lookup, options, validation }: Attribute): ImportColumn[] {
  const path = ['custom_attributes', code]
  const choices = lookup === null ? options : []
  switch (type) {
    case 'subheading':
      return []
    case 'address':
      return parts(code, path)
    case 'email':
      return [column(code, readAddresses, path)]
    case 'phone':
      return [column(code, readNumbers, path)]
    case 'select':
    case 'lookup':
      return [column(code, optionReader(choices), path)]
    case 'multiselect':
    case 'checkbox':
      return [column(code, optionListReader(choices), path)]
    case 'datetime':
      return [column(code, readMoment, path)]
    case 'date':
      return [column(code, readDate, path)]
    case 'price':
      return [column(code, readDecimal, path)]
    case 'boolean':
      return [column(code, readFlag, path)]
    case 'image':
    case 'file':
      return [column(code, readWholeNumber, path)]
    default:
      return [column(code, validation === 'decimal' || validation === 'numeric' ? readDecimal : readText, path)]
  }
}

export const customImportColumns = async (ctx: Context, type: ImportType): Promise<ImportColumn[]> =>
  (await customAttributes(ctx, type)).flatMap((attribute) =>
    attributeColumns(attribute).map((each) => ({ ...each, label: each.name.replace(attribute.code, attribute.name) })),
  )

/**
 * Returns all columns of a type, by name. A built-in column replaces a custom attribute of the same
 * name.
 */
export async function importColumns(ctx: Context, type: ImportType): Promise<Map<string, ImportColumn>> {
  const unique = new Set((await attributesOf(ctx, type)).filter(({ isUnique }) => isUnique).map(({ code }) => code))
  const isUnique = ({ path: [first = '', second = ''] }: ImportColumn): boolean =>
    unique.has(first === 'custom_attributes' ? second : first)
  const all = [...references[type], ...(await customImportColumns(ctx, type)), ...builtIn[type]]
  return new Map(all.map((each) => [each.name, { ...each, isUnique: isUnique(each) }]))
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
 * Returns the names of columns that a file may have although imports ignore them: the columns of
 * exports. A name that is also in `importColumns` is imported.
 */
export async function ignoredColumns(ctx: Context, type: ImportType): Promise<ReadonlySet<string>> {
  // Error reports contain a column `error`, and users import corrected reports.
  return new Set(['error', ...(await exportColumns[type](ctx)).map(({ name }) => name)])
}

export interface FileHeader {
  columns: readonly FileColumn[]
  faults: HeaderFault[]
  /** The headers of the file, trimmed. */
  headers: readonly string[]
  /** The places of the columns without a field. A column that only exports have is none of them. */
  leftOut: readonly number[]
}

/**
 * Returns the columns of a file in reading order, without ignored columns, and the header's errors.
 */
export async function readHeader(
  ctx: Context,
  { type, action, mapping, constants }: ImportPlan,
  cells: readonly string[],
): Promise<FileHeader> {
  const known = await importColumns(ctx, type)
  const passed = await ignoredColumns(ctx, type)
  const key = keyColumns[type][action]
  const faults: HeaderFault[] = []
  const seen = new Set<string>()
  const headers = cells.map((cell) => cell.trim())
  // A deletion uses only the key column and ignores all others.
  const isUsed = (field: string): boolean => known.has(field) && (action !== 'delete' || field === key)
  const columns = headers.flatMap((header, index): FileColumn[] => {
    const isMapped = mapping !== null && Object.hasOwn(mapping, header)
    const mapped = isMapped ? (mapping[header] ?? null) : header
    const fields = mappedFields(mapped)
    if (faults.length >= maxFaults) return []
    for (const field of fields) {
      const sentence = faultOf({ header, field, isMapped, index }, seen, known, passed)
      if (sentence !== undefined) faults.push({ column: header === '' ? null : shortened(header), message: sentence })
    }
    for (const field of fields) seen.add(field)
    const rule = typeof mapped === 'object' && mapped !== null ? mapped : null
    return fields
      .filter(isUsed)
      .map((field) => ({ ...(known.get(field) as ImportColumn), header, index, ...ruled(rule, headers) }))
  })
  const groups = Object.values(mapping ?? {}).flatMap((rule) =>
    typeof rule === 'object' && rule !== null ? (rule.fill_down ?? []) : [],
  )
  for (const header of [...Object.keys(mapping ?? {}), ...groups])
    if (faults.length < maxFaults && !headers.includes(header))
      faults.push({ column: shortened(header), message: `The file has no column ${shortened(header)}.` })
  const missing = missingColumns({ type, action }, [...seen])
  if (faults.length < maxFaults && missing)
    faults.push({ column: key, message: `The column ${missing.join(' or ')} is missing.` })
  const fixed = Object.entries(constants ?? {})
    .filter(([field]) => isUsed(field))
    .map(([field, constant]) => ({
      ...(known.get(field) as ImportColumn),
      header: field,
      index: -1,
      order: 0,
      isFallback: true,
      constant,
    }))
  const place = ({ isFallback, order }: FileColumn): number => (isFallback ? maxOrder : 0) + order
  const leftOut = headers.flatMap((header, index) => {
    const isUsed = columns.some((column) => column.index === index || column.pointLabel?.index === index)
    const isPassed = passed.has(header) && !(mapping !== null && Object.hasOwn(mapping, header))
    return isUsed || isPassed || action === 'delete' ? [] : index
  })
  return { leftOut, columns: [...columns.sort((one, other) => place(one) - place(other)), ...fixed], faults, headers }
}

/** Returns the parts of a column that come from its rule. */
function ruled(
  rule: ColumnRule | null,
  headers: readonly string[],
): Pick<FileColumn, 'order' | 'isFallback' | 'pointLabel' | 'values'> {
  const { order = 0, fallback: isFallback = false, label, label_column: labelColumn, values } = rule ?? {}
  const index = typeof labelColumn === 'string' ? headers.indexOf(labelColumn) : -1
  return {
    order,
    isFallback,
    ...((label || index >= 0) && { pointLabel: { text: label ?? null, index: index < 0 ? null : index } }),
    ...(values && { values: new Map(Object.entries(values).map(([from, to]) => [fold(from.trim()), to])) }),
  }
}

/** Returns the error of a column, or undefined for a column that can be read or is ignored. */
function faultOf(
  { header, field, isMapped, index }: { header: string; field: string; isMapped: boolean; index: number },
  seen: ReadonlySet<string>,
  known: ReadonlyMap<string, ImportColumn>,
  passed: ReadonlySet<string>,
): string | undefined {
  if (field === '') return `Column ${index + 1} has no name.`
  // Mapped columns may share a field. A header without a mapping must be the only one of its name.
  if (seen.has(field) && !isMapped) return `The column ${shortened(header)} occurs twice.`
  if (known.has(field) || (!isMapped && passed.has(field))) return undefined
  const told = isMapped ? `Unknown field ${shortened(field)}.` : `Unknown column ${shortened(field)}.`
  return `${told}${didYouMean(field, known.keys())}`
}

const maxFaults = 100
/** Above every `order` of a rule. */
const maxOrder = 10_000
/** The maximum length of a column name in an error message, in characters. */
const maxToldLength = 100

export const shortened = (name: string): string =>
  name.length > maxToldLength ? `${name.slice(0, maxToldLength)}…` : name
