// Reads the rows of an XLSX file in a child process (sheet.entry.ts) with limits, so that a
// malicious workbook kills the child and not the server. Rows stream on demand.
import { entryAt, ProcessFailed, valuesOfProcess } from '../../../../db/entry-file.ts'
import { unreadable } from '../errors.ts'
import type { SheetValue } from './sheet.entry.ts'

const program = entryAt(import.meta.url, './sheet.entry')
const memoryMiB = 768
/**
 * The maximum time until the first row. Later rows have no time limit, because the consumer sets
 * the pace.
 */
const firstRowTimeoutMs = 30_000

/** Throws for invalid workbooks and those that exceed the limits. */
export async function* sheetRows(
  bytes: Buffer,
  { sheet, findings }: { sheet?: string | null; findings: { sheets: readonly string[] } },
): AsyncGenerator<string[]> {
  const limits = { maxHeapMiB: memoryMiB, maxMs: firstRowTimeoutMs }
  try {
    for await (const row of valuesOfProcess<SheetValue>(program, { bytes, sheet: sheet ?? '' }, limits)) {
      if (Array.isArray(row)) yield row
      else if ('sheets' in row) findings.sheets = row.sheets
      else if ('refused' in row) throw unreadable(row.refused)
      else throw unreadable('The file is not a workbook that can be read.', 1, row.error)
    }
  } catch (cause) {
    throw cause instanceof ProcessFailed && cause.isStarted
      ? unreadable('The workbook takes too much memory or time to be read.', 1, cause)
      : cause
  }
}
