// Defines the columns of each import type: built-in columns and custom attributes. Imports ignore
// columns that only exports have.
import { componentOf, type OpenSchema, resolved } from '../../../contract/input/open-schema.ts'
import type { Context } from '../../../kernel/context.ts'
import { addressParts } from '../../../kernel/values/address.ts'
import { type Attribute, attributesOf, customAttributes } from '../../attributes/attribute-set.ts'
import { leadColumns } from '../../leads/columns.ts'
import { organizationColumns } from '../../organizations/columns.ts'
import { personColumns } from '../../persons/columns.ts'
import { productColumns } from '../../products/columns.ts'
import { readFlag } from '../read-cells/cell-formats.ts'
import {
  type CellReader,
  optionListReader,
  optionReader,
  readAddresses,
  readCountryCode,
  readDate,
  readDecimal,
  readExternalIds,
  readLines,
  readMoment,
  readNames,
  readNumbers,
  readProductLines,
  readText,
  readWholeNumber,
} from '../read-cells/cell-readers.ts'
import type { ImportAction, ImportType } from '../settings.ts'

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
  /** The new name of a column whose name the contract keeps as an old one (`x-alias`). */
  oldNameOf?: string
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

/** The columns that the contract does not describe, or that need a reader of their own. */
const further: Record<ImportType, readonly ImportColumn[]> = {
  persons: [
    column('organization_name'),
    list('emails', readAddresses),
    list('contact_numbers', readNumbers),
    list('tags', readNames),
  ],
  organizations: [...parts('address', ['address']), list('tags', readNames)],
  products: [column('description', readLines), list('tags', readNames)],
  leads: [
    column('id', readWholeNumber),
    column('person_email'),
    list('person_phone', readNumbers),
    list('product', readProductLines, ['products']),
    list('tags', readNames),
  ],
}

const bodySchemas: Record<ImportType, string> = {
  persons: 'PersonCreate',
  organizations: 'OrganizationCreate',
  products: 'ProductCreate',
  leads: 'LeadCreate',
}

/**
 * Returns the columns of a type without attributes: one for each text, number, flag and
 * reference of the body that creates a record, and those of `further`.
 */
export function builtInColumns(contract: object, type: ImportType): ImportColumn[] {
  const { properties = {} } = componentOf(contract, `#/components/schemas/${bodySchemas[type]}`) as OpenSchema
  const own = new Set(further[type].map(({ name }) => name))
  const derived = Object.entries(properties).flatMap(([name, property]) => {
    const read = readerOf(resolved(contract, property) as OpenSchema)
    return own.has(name) || read === undefined || property['x-alias'] !== undefined ? [] : [column(name, read)]
  })
  return [...derived, column('external_ids', readExternalIds), ...further[type]]
}

/** Returns the columns of `builtInColumns` under their old names. */
function oldColumns(contract: object, type: ImportType): ImportColumn[] {
  const { properties = {} } = componentOf(contract, `#/components/schemas/${bodySchemas[type]}`) as OpenSchema
  const current = new Map(builtInColumns(contract, type).map((each) => [each.name, each]))
  return Object.entries(properties).flatMap(([name, { 'x-alias': oldNameOf = '' }]) => {
    const found = current.get(oldNameOf)
    return found ? [{ ...found, name, oldNameOf }] : []
  })
}

/** Returns the reader of a property; undefined for lists, records, and keys that no reply shows. */
function readerOf(schema: OpenSchema): CellReader | undefined {
  if (schema.writeOnly === true) return undefined
  if (schema['x-reference'] !== undefined) return readWholeNumber
  const types = [schema.type].flat()
  if (types.includes('integer')) return readWholeNumber
  if (types.includes('number')) return readDecimal
  if (types.includes('boolean')) return readFlag
  const value = schema['x-value'] ?? schema.format
  if (value === 'date') return readDate
  if (value === 'date-time') return readMoment
  return types.includes('string') ? readText : undefined
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
    case 'number':
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
  const all = [
    ...references[type],
    ...(await customImportColumns(ctx, type)),
    ...oldColumns(ctx.services.contract, type),
    ...builtInColumns(ctx.services.contract, type),
  ]
  return new Map(all.map((each) => [each.name, { ...each, isUnique: isUnique(each) }]))
}

const exportColumns = {
  persons: personColumns,
  organizations: organizationColumns,
  products: productColumns,
  leads: leadColumns,
} satisfies Record<ImportType, unknown>

/**
 * Returns the names of columns that a file may have although imports ignore them: the columns of
 * exports. A name that is also in `importColumns` is imported.
 */
export async function ignoredColumns(ctx: Context, type: ImportType): Promise<ReadonlySet<string>> {
  // Error reports contain a column `error`, and users import corrected reports.
  return new Set(['error', ...(await exportColumns[type](ctx)).map(({ name }) => name)])
}
