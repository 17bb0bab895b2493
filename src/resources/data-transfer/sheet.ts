// The rows of an XLSX file, read by a process of its own (sheet.mjs) with limits: a workbook made to fill the memory ends that
// process and not the server. Rows come as they are asked for.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Unreadable } from './unreadable.ts'
import { zipEntries } from './zip.ts'

const program = fileURLToPath(new URL('./sheet.mjs', import.meta.url))
const memoryMiB = 768
/** Until the first row; then whoever reads decides how long it takes. */
const patienceMs = 30_000

type Reader = ChildProcessByStdio<Writable, Readable, null>

/** Throws `Unreadable` for what is no workbook, or one that takes too much. */
export async function* sheetRows(bytes: Buffer): AsyncGenerator<string[]> {
  const entries = zipEntries(bytes)
  if (typeof entries === 'string') throw new Unreadable(entries)
  const sheets = entries
    .filter(({ name }) => /^\/?xl\/worksheets\/.*\.xml$/i.test(name))
    .map(({ from, to, isPacked }) => ({ from, to, isPacked }))
  // Of the environment it needs nothing, so it gets nothing.
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
  const patience = setTimeout(() => reader.kill('SIGKILL'), patienceMs)
  try {
    // One that ends early has its own way to say so.
    reader.stdin.on('error', () => undefined)
    reader.stdin.end(bytes)
    const lines = createInterface({ input: reader.stdout, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
    for (;;) {
      const { done, value: line } = await Promise.race([lines.next(), failed])
      clearTimeout(patience)
      if (done) throw new Unreadable('The workbook takes too much memory or time to be read.')
      const row = JSON.parse(line) as string[] | { end: true } | { error: string }
      if (Array.isArray(row)) yield row
      else if ('end' in row) return
      else throw new Unreadable('The file is not a workbook that can be read.', row.error)
    }
  } finally {
    clearTimeout(patience)
    reader.kill('SIGKILL')
  }
}
