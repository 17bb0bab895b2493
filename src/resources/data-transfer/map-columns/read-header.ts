// Checks the header of a file against the columns of its type, and finds the fields of each column.
import { didYouMean } from '../../../contract/input/validation-errors.ts'
import type { Context } from '../../../kernel/context.ts'
import { fold } from '../../../kernel/values/format.ts'
import { type ColumnRule, type ImportPlan, mappedFields } from '../settings.ts'
import {
  type FileColumn,
  type ImportColumn,
  ignoredColumns,
  importColumns,
  keyColumns,
  missingColumns,
} from './columns.ts'

interface HeaderFault {
  column: string | null
  message: string
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
  // Exports have both names of a renamed field. The column with the old name is ignored then.
  const isTwin = (field: string): boolean => {
    const current = known.get(field)?.oldNameOf
    return current !== undefined && headers.includes(current)
  }
  const columns = headers.flatMap((header, index): FileColumn[] => {
    const isMapped = mapping !== null && Object.hasOwn(mapping, header)
    const mapped = isMapped ? (mapping[header] ?? null) : header
    const fields = mappedFields(mapped)
      .filter((field) => !isTwin(field))
      .map((field) => known.get(field)?.oldNameOf ?? field)
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
    const isPassed = (passed.has(header) || isTwin(header)) && !(mapping !== null && Object.hasOwn(mapping, header))
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
  const similar = didYouMean(field, known.keys())
  if (isMapped) return `Unknown field ${shortened(field)}.${similar}`
  return `Unknown column ${shortened(field)}.${similar || ' Map it to a field, or to null to leave it out.'}`
}

const maxFaults = 100
/** Above every `order` of a rule. */
const maxOrder = 10_000
/** The maximum length of a column name in an error message, in characters. */
const maxToldLength = 100

export const shortened = (name: string): string =>
  name.length > maxToldLength ? `${name.slice(0, maxToldLength)}…` : name
