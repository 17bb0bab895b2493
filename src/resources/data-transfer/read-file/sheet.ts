// Reads the rows of an XLSX file in a child process (sheet.entry.ts) with limits, so that a
// malicious workbook kills the child and not the server. Rows stream on demand.
import { createInterface } from 'node:readline'
import { entryAt, startPipedProcess } from '../../../../db/entry-file.ts'
import { unreadable } from '../errors.ts'
import type { SheetLine } from './sheet.entry.ts'

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
  const reader = startPipedProcess(program, memoryMiB, [sheet ?? ''])
  const failed = new Promise<never>((_resolve, reject) => reader.once('error', reject))
  failed.catch(() => undefined)
  const patience = setTimeout(() => reader.kill('SIGKILL'), firstRowTimeoutMs)
  try {
    // Ignores write errors: the child may exit before it has read its input, and its output then
    // contains the reason.
    reader.stdin.on('error', () => undefined)
    reader.stdin.end(bytes)
    const lines = createInterface({ input: reader.stdout, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
    for (;;) {
      const { done, value: line } = await Promise.race([lines.next(), failed])
      clearTimeout(patience)
      if (done) throw unreadable('The workbook takes too much memory or time to be read.')
      const row = JSON.parse(line) as SheetLine
      if (Array.isArray(row)) yield row
      else if ('sheets' in row) findings.sheets = row.sheets
      else if ('end' in row) return
      else if ('refused' in row) throw unreadable(row.refused)
      else throw unreadable('The file is not a workbook that can be read.', 1, row.error)
    }
  } finally {
    clearTimeout(patience)
    reader.kill('SIGKILL')
  }
}
