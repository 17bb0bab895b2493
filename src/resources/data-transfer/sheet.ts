// Reads the rows of an XLSX file in a child process (sheet.mjs) with limits. A malicious workbook
// then crashes only the child, not the server. The child sends rows as the consumer reads them.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { UnreadableFile } from './unreadable-file.ts'
import { zipEntries } from './zip.ts'

const program = fileURLToPath(new URL('./sheet.mjs', import.meta.url))
const memoryMiB = 768
/**
 * The maximum time until the first row. Later rows have no time limit, because the consumer sets
 * the pace.
 */
const firstRowTimeoutMs = 30_000

type Reader = ChildProcessByStdio<Writable, Readable, null>

/**
 * Yields the rows of the first sheet. Throws `UnreadableFile` for an invalid workbook, and for one
 * that exceeds the limits.
 */
export async function* sheetRows(bytes: Buffer): AsyncGenerator<string[]> {
  const entries = zipEntries(bytes)
  if (typeof entries === 'string') throw new UnreadableFile(entries)
  const sheets = entries
    .filter(({ name }) => /^\/?xl\/worksheets\/.*\.xml$/i.test(name))
    .map(({ from, to, isPacked }) => ({ from, to, isPacked }))
  // The child needs no environment variables, so it gets none.
  const reader: Reader = spawn(
    process.execPath,
    [`--max-old-space-size=${memoryMiB}`, program, JSON.stringify(sheets)],
    {
      env: {},
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  const failed = new Promise<never>((_resolve, reject) => reader.once('error', reject))
  failed.catch(() => undefined)
  const patience = setTimeout(() => reader.kill('SIGKILL'), firstRowTimeoutMs)
  try {
    // The child may exit before reading all its input. The output of the child tells the reason.
    reader.stdin.on('error', () => undefined)
    reader.stdin.end(bytes)
    const lines = createInterface({ input: reader.stdout, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
    for (;;) {
      const { done, value: line } = await Promise.race([lines.next(), failed])
      clearTimeout(patience)
      if (done) throw new UnreadableFile('The workbook takes too much memory or time to be read.')
      const row = JSON.parse(line) as string[] | { end: true } | { error: string }
      if (Array.isArray(row)) yield row
      else if ('end' in row) return
      else throw new UnreadableFile('The file is not a workbook that can be read.', row.error)
    }
  } finally {
    clearTimeout(patience)
    reader.kill('SIGKILL')
  }
}
