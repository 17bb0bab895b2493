// Starts an entry file (`x.entry.ts`) in a thread or process of its own, from the sources or from
// the build. It gets no environment, so no secrets. This file is part of db because db imports
// nothing from outside, and others may import it.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { threadId, Worker } from 'node:worker_threads'

const isSource = import.meta.url.endsWith('.ts')

/** `entryAt(import.meta.url, './x.entry')` is `x.entry.ts` beside the caller, compiled or not. */
export const entryAt = (base: string, name: `${string}.entry`): URL =>
  new URL(`${name}.${isSource ? 'ts' : 'js'}`, base)

/** The entry file reads `input` as `workerData`. It imports values from packages only. */
export const startThread = <Input>(entry: URL, input: Input): Worker =>
  new Worker(isSource ? compileEntry(entry) : entry, { workerData: input, env: {}, execArgv: [] })

export type PipedProcess = ChildProcessByStdio<Writable, Readable, null>

/** The process reads its standard input and answers on its standard output. */
export const startPipedProcess = (entry: URL, maxHeapMiB: number, args: readonly string[] = []): PipedProcess =>
  spawn(process.execPath, [...commandLine(entry, maxHeapMiB), ...args], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })

/** The process receives and sends messages. */
export const startMessagingProcess = (entry: URL, maxHeapMiB: number): ChildProcess =>
  spawn(process.execPath, commandLine(entry, maxHeapMiB), {
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })

const commandLine = (entry: URL, maxHeapMiB: number): string[] => [
  `--max-old-space-size=${maxHeapMiB}`,
  ...(isSource ? ['--import', import.meta.resolve('tsx')] : []),
  fileURLToPath(entry),
]

/**
 * Compiles an entry file of the sources for a thread. The option `--import tsx` does nothing in
 * threads of Node 20, and registering tsx there takes much longer than starting the thread. The
 * compiled file is named by its content, so it is never out of date.
 */
function compileEntry(entry: URL): URL {
  const text = readFileSync(entry, 'utf8')
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const folder = new URL('../node_modules/.cache/accord-threads/', import.meta.url)
  const compiled = new URL(`${name}.mjs`, folder)
  if (existsSync(compiled)) return compiled
  const { transformSync } = createRequire(import.meta.url)('esbuild') as typeof import('esbuild')
  mkdirSync(folder, { recursive: true })
  // Another process may compile the same file now, so a complete file takes the name.
  const unfinished = new URL(`${name}-${process.pid}-${threadId}`, folder)
  writeFileSync(unfinished, transformSync(text, { loader: 'ts', format: 'esm', sourcefile: entry.href }).code)
  renameSync(unfinished, compiled)
  return compiled
}
