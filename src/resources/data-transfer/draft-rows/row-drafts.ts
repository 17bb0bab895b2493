// Converts a row to the body of an API call. An empty cell is omitted, NULL clears the field, and
// other cells are parsed by their column. The schema of the operation validates the body, so rows
// get the same errors as API calls.
import { bodyReader } from '../../../contract/input/body-reader.ts'
import type { FieldErrors } from '../../../contract/output/problems.ts'
import type { OperationId } from '../../../contract/types.ts'
import type { Context } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import { type ImportStop, type RowError, refusedRow, stops } from '../errors.ts'
import type { FileColumn } from '../map-columns/columns.ts'
import type { CellFormats } from '../read-cells/cell-formats.ts'
import { firstIn } from '../read-cells/list-cells.ts'
import type { SheetRow } from '../read-file/read-rows.ts'
import type { ImportType } from '../settings.ts'
import { putValue } from './put-value.ts'
import { readCell } from './read-cell.ts'

/** A value that the import reads as another value. Null is an empty cell. */
export interface CellChange {
  column: string
  from: string | null
  to: string | null
}

export interface RowDraft {
  row: number
  /** The original cells, for the error report. */
  cells: readonly string[]
  columns: readonly FileColumn[]
  body: Readonly<Record<string, unknown>>
  /** The names of records that references.ts finds, by field. */
  names: Readonly<Partial<Record<string, string>>>
  /** Cells without a value, such as `#N/A`, which are left out. */
  omissions: readonly RowError[]
  changes: readonly CellChange[]
  /** The changes by references.ts, by field. A row that is read again keeps them. */
  named: Map<string, CellChange>
  fillsNames: boolean
  /** Tag names; undefined when the row has none. */
  tags: readonly string[] | undefined
  /** The e-mail address of a lead's person. */
  personEmail: string | null | undefined
  /** The telephone numbers of a lead's person. */
  personNumbers: readonly { value: string }[] | undefined
  /** The cell value of a lead's id. */
  id: unknown
  errors: readonly RowError[]
}

/** Creates an error of a row, at the column of the given field. */
export const rowError = (
  { row, columns }: Pick<RowDraft, 'row' | 'columns'>,
  field: string | null,
  message: string,
  code = 'validation_failed',
): RowError => ({ row, column: columns.find((each) => each.name === field)?.header ?? field, code, message })

/** Creates the error to throw for a row with one error. */
export const rowRefused = (...about: Parameters<typeof rowError>): ImportStop<'row'> => refusedRow([rowError(...about)])

/** The columns and formats for reading the cells of a file. */
export interface CellReading {
  columns: readonly FileColumn[]
  /** The number of cells of the header. */
  width: number
  formats: CellFormats
  /** Whether a new person without a name gets one from another column. */
  fillsNames: boolean
}

/**
 * Parses a row by its columns and collects the errors of its cells. The cells under the headers
 * `omitted` are read as if they were empty.
 */
export function parseRow(
  { row, cells }: SheetRow,
  { columns, width, formats, fillsNames }: CellReading,
  omitted: ReadonlySet<string> = new Set(),
  named: RowDraft['named'] = new Map(),
): RowDraft {
  const body: Record<string, unknown> = {}
  const errors: RowError[] = []
  const omissions: RowError[] = []
  const changes: CellChange[] = []
  const fail = (column: string | null, message: string): void => {
    errors.push({ row, column, code: 'validation_failed', message })
  }
  if (columns.some(({ name }) => amounts.has(name)) && isSum(cells))
    fail(null, 'The row looks like the sum of the others, and is left out.')
  if (cells.length !== width) fail(null, `The row has ${cells.length} cells, the header ${width}.`)
  for (const column of columns) {
    if (omitted.has(column.header)) continue
    try {
      const read = readCell(column, cells, formats)
      if (read === undefined) continue
      if (read.lost) omissions.push({ row, column: column.header, code: 'validation_failed', message: read.lost })
      const counts = 'value' in read && !read.lost ? putValue(body, column, read.value, changes) : true
      if (read.change && counts) changes.push({ column: column.header, ...read.change })
    } catch (error) {
      if (!stops(error, 'cell')) throw error
      fail(column.header, error.message)
    }
  }
  const { tags, person_email: personEmail, person_phone: personNumbers, id, names = {}, ...rest } = body
  const company = typeof rest.organization_name === 'string' ? rest.organization_name.trim() : ''
  if (firstIn(company) !== company) {
    const column = columns.find(({ name }) => name === 'organization_name')?.header ?? 'organization_name'
    changes.push({ column, from: company, to: firstIn(company) })
    rest.organization_name = firstIn(company)
  }
  return {
    row,
    cells,
    columns,
    body: rest,
    tags: tags as string[] | undefined,
    personEmail: personEmail as string | null | undefined,
    personNumbers: personNumbers as readonly { value: string }[] | undefined,
    id,
    names: names as Record<string, string>,
    omissions,
    changes,
    named,
    fillsNames,
    errors,
  }
}

/** The fields that tables have sums of. */
const amounts: ReadonlySet<string> = new Set(['lead_value', 'price', 'quantity'])
const sumWords =
  /^(grand total|total|totals|sub ?total|sum|summe|gesamt|gesamtsumme|zwischensumme|totale?|somme|suma|итого|合計|合计|합계)\s?:?$/i

/** Returns whether a row has a word for a sum, and otherwise only one or two numbers. */
function isSum(cells: readonly string[]): boolean {
  const filled = cells.map((cell) => cell.trim()).filter((cell) => cell !== '')
  const others = filled.filter((cell) => !sumWords.test(cell))
  const areNumbers = others.every((cell) => /^[^\p{L}]*\d[^\p{L}]*(\p{Lu}{3})?$/u.test(cell))
  return filled.length - others.length === 1 && others.length >= 1 && others.length <= 2 && areNumbers
}

const writes: Record<ImportType, { create: OperationId; update: OperationId; remove: OperationId }> = {
  persons: { create: 'createPerson', update: 'updatePerson', remove: 'deletePerson' },
  organizations: { create: 'createOrganization', update: 'updateOrganization', remove: 'deleteOrganization' },
  products: { create: 'createProduct', update: 'updateProduct', remove: 'deleteProduct' },
  leads: { create: 'createLead', update: 'updateLead', remove: 'deleteLead' },
}

export const operationOf = (type: ImportType, write: 'create' | 'update' | 'remove'): OperationId => writes[type][write]

/** Parses the row's body by the schema of the operation. Returns the value and the errors. */
export function readRowBody({ services: { contract, config } }: Context, draft: RowDraft, operation: OperationId) {
  const isNewPerson = operation === 'createPerson'
  const body = isNewPerson ? withName(draft) : draft.body
  const read = bodyReader(contract, operation)(body, { zone: config.timezone, strict: config.strict })
  const isNameless = isNewPerson && draft.body.name === undefined && read.errors.name
  return isNameless ? { ...read, errors: { ...read.errors, name: [nameless] } } : read
}

/**
 * Names a new person without a name by the organization, or else by the first address or number.
 * Address books have cards of companies, and lists of subscribers have only addresses.
 */
function withName({ body, named, fillsNames }: RowDraft): object {
  if (!fillsNames || body.name !== undefined) return body
  const first = (field: string): unknown => (body[field] as { value?: unknown }[] | undefined)?.[0]?.value
  const name = body.organization_name ?? first('emails') ?? first('contact_numbers')
  if (typeof name !== 'string') return body
  named.set('name', { column: 'name', from: null, to: name })
  return { ...body, name }
}

/** Returns the body of the row's API call, or null when the row has errors. */
export function validBodyOf(ctx: Context, draft: RowDraft, operation: OperationId): object | null {
  if (draft.errors.length > 0) return null
  const { value, errors } = readRowBody(ctx, draft, operation)
  return Object.keys(errors).length === 0 ? value : null
}

const nameless = 'The person has no name. With `missing_names: fill`, the organization or the address is the name.'

/** Returns the body of the row's API call. Throws `ImportStop` with all errors of the row. */
export function bodyOf(ctx: Context, draft: RowDraft, operation: OperationId): object {
  const { value, errors } = readRowBody(ctx, draft, operation)
  const found = schemaErrors(draft, errors)
  if (found.length > 0) throw refusedRow(found)
  return value
}

export function schemaErrors(draft: RowDraft, errors: FieldErrors): RowError[] {
  // A cell that could not be parsed already has an error, so schema errors of the cell's column are
  // left out.
  const columns = new Set(draft.errors.map(({ column }) => column))
  const found = rowErrors(draft, errors).filter(({ column }) => !columns.has(column) || column === null)
  return [...draft.errors, ...found]
}

/** Converts an error of the API call to row errors. Rethrows errors that the row did not cause. */
export function toRowErrors(draft: RowDraft, error: unknown): readonly RowError[] {
  if (stops(error, 'row')) return error.stopped.errors
  if (!(error instanceof Problem) || error.status >= 500) throw error
  const { errors } = error.more
  if (errors) return rowErrors(draft, errors, error.code)
  return [{ row: draft.row, column: null, code: error.code, message: error.message }]
}

/** Converts errors by field to row errors by column. */
export const rowErrors = (draft: RowDraft, errors: FieldErrors, code = 'validation_failed'): RowError[] =>
  Object.entries(errors).flatMap(([field, sentences]) => {
    const column = columnOf(draft, field)
    // The message contains the name of the field when the field has no column.
    return sentences.map((message) => ({
      row: draft.row,
      column,
      code,
      message: column === null ? `${field}: ${message}` : message,
    }))
  })

/** Column names of fields, if different from the field name, the nearest first. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  tag_ids: ['tags'],
  person_id: ['person_email', 'person'],
  person: ['person_email', 'person'],
  user_id: ['user'],
  lead_pipeline_id: ['pipeline'],
  lead_pipeline_stage_id: ['stage', 'status'],
  lead_source_id: ['source'],
  lead_type_id: ['type'],
}

/** Returns the header of the most specific column that contains the field. */
function columnOf({ columns }: RowDraft, field: string): string | null {
  const [first = ''] = field.split('.')
  const around = columns.filter((column) => `${field}.`.startsWith(`${column.path.join('.')}.`))
  const nearest = around.sort((one, other) => other.path.length - one.path.length)[0]
  if (nearest) return nearest.header
  const named = (aliases[first] ?? []).map((name) => columns.find((column) => column.name === name))
  return named.find((column) => column !== undefined)?.header ?? null
}
