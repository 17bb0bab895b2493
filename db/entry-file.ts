// Starts an entry file (`x.entry.ts`) in its own thread or process, from the sources or from the
// build. The environment is empty, so no secret reaches it. This file is in db because src may
// import db, but db may not import src.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { threadId, Worker } from 'node:worker_threads'

const isSource = import.meta.url.endsWith('.ts')

/**
 * Returns the URL of an entry file in the caller's folder: `x.entry.ts` in the sources,
 * `x.entry.js` in the build. Example: `entryAt(import.meta.url, './x.entry')`.
 */
export const entryAt = (base: string, name: `${string}.entry`): URL =>
  new URL(`${name}.${isSource ? 'ts' : 'js'}`, base)

/** Starts a thread, which reads `input` as `workerData`. */
export const startThread = <Input>(entry: URL, input: Input): Worker =>
  new Worker(isSource ? compileEntry(entry) : entry, { workerData: input, env: {}, execArgv: [] })

export type PipedProcess = ChildProcessByStdio<Writable, Readable, null>

/** Starts a process that communicates over its standard input and output. */
export const startPipedProcess = (entry: URL, maxHeapMiB: number, args: readonly string[] = []): PipedProcess =>
  spawn(process.execPath, [...commandLine(entry, maxHeapMiB), ...args], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })

/** Starts a process that communicates by IPC messages. */
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
 * Compiles an entry file of the sources for a thread, with the files that it imports. In threads,
 * Node 20 ignores `--import tsx`, and registering tsx takes much longer than starting the thread.
 * The file name contains a hash of the sources, so a changed source is compiled again.
 */
function compileEntry(entry: URL): URL {
  const texts = [...sourcesOf(entry).values()].join('\n')
  const name = createHash('sha256').update(texts).digest('hex').slice(0, 16)
  const folder = new URL('../node_modules/.cache/accord-threads/', import.meta.url)
  const compiled = new URL(`${name}.mjs`, folder)
  if (existsSync(compiled)) return compiled
  const { buildSync } = createRequire(import.meta.url)('esbuild') as typeof import('esbuild')
  mkdirSync(folder, { recursive: true })
  // Another process may compile the same file now. The rename keeps it from reading half a file.
  const unfinished = new URL(`${name}-${process.pid}-${threadId}`, folder)
  buildSync({
    entryPoints: [fileURLToPath(entry)],
    outfile: fileURLToPath(unfinished),
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  })
  renameSync(unfinished, compiled)
  return compiled
}

/** Returns the texts of a source file and of all source files that it imports. */
function sourcesOf(file: URL, found = new Map<string, string>()): Map<string, string> {
  if (found.has(file.href)) return found
  const text = readFileSync(file, 'utf8')
  found.set(file.href, text)
  for (const [, path = ''] of text.matchAll(/ from '(\.[^']*\.ts)'/g)) sourcesOf(new URL(path, file), found)
  return found
}
