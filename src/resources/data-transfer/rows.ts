// A row of a file as the body of an API call: an empty cell is not sent, NULL clears, all others are read by their column. The
// body is validated by the operation's own schema, so a row is refused with the sentences an API caller would get.
import { bodyReader } from '../../contract/input/body-reader.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { unescapeFormula } from '../../kernel/resource/csv-cells.ts'
import { CellFault } from './cells.ts'
import type { Column, Type } from './columns.ts'
import type { SheetRow } from './read.ts'

export interface RowError {
  row: number
  column: string | null
  code: string
  message: string
}

/** All that is wrong with one row. */
export class RowRefused extends Error {
  readonly errors: readonly RowError[]
  constructor(errors: readonly RowError[]) {
    super('row refused')
    this.errors = errors
  }
}

export interface Draft {
  row: number
  /** As they are in the file, for the report. */
  cells: readonly string[]
  columns: readonly (Column | null)[]
  body: Readonly<Record<string, unknown>>
  /** Names of tags; undefined when none were sent. */
  tags: readonly string[] | undefined
  /** Of a lead, the person's address. */
  personEmail: string | null | undefined
  /** Of a lead, its id. */
  id: unknown
  errors: readonly RowError[]
}

export const refused = (
  { row }: Pick<Draft, 'row'>,
  column: string | null,
  message: string,
  code = 'validation_failed',
) => new RowRefused([{ row, column, code, message }])

/** The row by its columns; of what cannot be read, the error. */
export function draftOf({ row, cells }: SheetRow, columns: readonly (Column | null)[]): Draft {
  const body: Record<string, unknown> = {}
  const errors: RowError[] = []
  const fail = (column: string | null, message: string): void => {
    errors.push({ row, column, code: 'validation_failed', message })
  }
  if (cells.length !== columns.length) fail(null, `The row has ${cells.length} cells, the header ${columns.length}.`)
  for (const [index, column] of columns.entries()) {
    const cell = unescapeFormula(cells[index] ?? '')
    if (!column || cell.trim() === '') continue
    try {
      put(body, column.path, cell.trim() === 'NULL' ? column.cleared : column.read(cell))
    } catch (error) {
      if (!(error instanceof CellFault)) throw error
      fail(column.name, error.message)
    }
  }
  const { tags, person_email: personEmail, id, ...rest } = body
  return {
    row,
    cells,
    columns,
    body: rest,
    tags: tags as string[] | undefined,
    personEmail: personEmail as string | null | undefined,
    id,
    errors,
  }
}

function put(body: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...below] = path
  if (below.length === 0) {
    // As an own key, whatever it is called.
    Object.defineProperty(body, key, { value, enumerable: true, configurable: true, writable: true })
    return
  }
  const inner = Object.hasOwn(body, key) ? (body[key] as Record<string, unknown>) : {}
  put(inner, below, value)
  put(body, [key], inner)
}

const writes: Record<Type, { create: OperationId; update: OperationId; remove: OperationId }> = {
  persons: { create: 'createPerson', update: 'updatePerson', remove: 'deletePerson' },
  organizations: { create: 'createOrganization', update: 'updateOrganization', remove: 'deleteOrganization' },
  products: { create: 'createProduct', update: 'updateProduct', remove: 'deleteProduct' },
  leads: { create: 'createLead', update: 'updateLead', remove: 'deleteLead' },
}

export const operationOf = (type: Type, write: 'create' | 'update' | 'remove'): OperationId => writes[type][write]

const read = ({ services: { contract, config } }: Context, { body }: Draft, operation: OperationId) =>
  bodyReader(contract, operation)(body, { zone: config.timezone, strict: config.strict })

/** The same when nothing is wrong with the row; null otherwise. */
export function validBodyOf(ctx: Context, draft: Draft, operation: OperationId): object | null {
  if (draft.errors.length > 0) return null
  const { value, errors } = read(ctx, draft, operation)
  return Object.keys(errors).length === 0 ? value : null
}

/** The body of the call that the row stands for. Throws `RowRefused` with all that is wrong with it. */
export function bodyOf(ctx: Context, draft: Draft, operation: OperationId): object {
  const { value, errors } = read(ctx, draft, operation)
  // A cell that could not be read is told of once.
  const told = new Set(draft.errors.map(({ column }) => column))
  const found = rowErrors(draft, errors, 'validation_failed').filter(
    ({ column }) => !told.has(column) || column === null,
  )
  if (draft.errors.length + found.length > 0) throw new RowRefused([...draft.errors, ...found])
  return value
}

/** What the service had against a row, at the columns of the file. Throws again what is no fault of the row. */
export function errorsOf(draft: Draft, error: unknown): readonly RowError[] {
  if (error instanceof RowRefused) return error.errors
  if (!(error instanceof Problem) || error.status >= 500) throw error
  const { errors } = error.more
  if (errors) return rowErrors(draft, errors, error.code)
  return [{ row: draft.row, column: null, code: error.code, message: error.message }]
}

const rowErrors = (draft: Draft, errors: FieldErrors, code: string): RowError[] =>
  Object.entries(errors).flatMap(([field, sentences]) => {
    const column = columnOf(draft, field)
    // A field that the file has no column for is named in the sentence.
    return sentences.map((message) => ({
      row: draft.row,
      column,
      code,
      message: column === null ? `${field}: ${message}` : message,
    }))
  })

/** Fields that columns stand for although they are called otherwise. */
const aliases: Readonly<Record<string, string>> = { tag_ids: 'tags' }

/** The column whose value stands at a field or around it; the nearest one. */
function columnOf({ columns }: Draft, field: string): string | null {
  const [first = '', ...rest] = field.split('.')
  const at = [aliases[first] ?? first, ...rest].join('.')
  const around = columns.filter(
    (column): column is Column => column !== null && `${at}.`.startsWith(`${column.path.join('.')}.`),
  )
  const nearest = around.sort((one, other) => other.path.length - one.path.length)[0]
  if (nearest) return nearest.name
  const byEmail = first === 'person_id' ? columns.find((column) => column?.name === 'person_email') : undefined
  return byEmail?.name ?? null
}
