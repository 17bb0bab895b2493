// Runs an entry file (`x.entry.ts`) in its own thread or process, from the sources or from the
// build. The environment is empty, so no secret reaches it. This file is in db because src may
// import db, but db may not import src.
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { deserialize, serialize } from 'node:v8'
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

/** Thrown when a process cannot start, and when it took too much time or memory. */
export class ProcessFailed extends Error {
  constructor(
    readonly isStarted: boolean,
    cause?: unknown,
  ) {
    super(isStarted ? 'A process took too much time or memory.' : 'A process cannot start.', { cause })
  }
}

/**
 * Runs an entry file in a process of its own, which gets `input` from `processInput`, and yields
 * the values that it passes to `yieldFromProcess`, as fast as they are consumed. Kills the process
 * when its first value takes longer than `maxMs`, and when the consumer stops. Throws
 * ProcessFailed.
 */
export async function* valuesOfProcess<Value>(
  entry: URL,
  input: unknown,
  { maxHeapMiB, maxMs }: { maxHeapMiB: number; maxMs: number },
): AsyncGenerator<Value> {
  const child = spawn(process.execPath, commandLine(entry, maxHeapMiB), { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  if (child.pid === undefined) throw new ProcessFailed(false, (await once(child, 'error'))[0])
  const closed = once(child, 'close')
  const patience = setTimeout(() => child.kill('SIGKILL'), maxMs)
  try {
    // A process that ends early does not read its input. Its exit code shows the failure.
    child.stdin.on('error', () => undefined)
    child.stdin.end(serialize(input))
    const held: Buffer[] = []
    let size = 0
    let wanted = lengthBytes
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      size += held.push(chunk) && chunk.length
      if (size < wanted) continue
      let bytes = Buffer.concat(held.splice(0))
      for (;;) {
        wanted = lengthBytes + (bytes.length < lengthBytes ? 0 : bytes.readUInt32LE(0))
        if (bytes.length < Math.max(wanted, lengthBytes)) break
        clearTimeout(patience)
        yield deserialize(bytes.subarray(lengthBytes, wanted)) as Value
        bytes = bytes.subarray(wanted)
      }
      held.push(bytes)
      size = bytes.length
    }
    const [code] = await closed
    if (code !== 0) throw new ProcessFailed(true)
  } finally {
    clearTimeout(patience)
    child.kill('SIGKILL')
  }
}

/** Before each value stands its length. */
const lengthBytes = 4

/** Returns the input of this process, which `valuesOfProcess` has started. */
export const processInput = async <Input>(): Promise<Input> => deserialize(await buffer(process.stdin)) as Input

/** Passes a value to the process that has started this one, and waits until it takes more. */
export async function yieldFromProcess(value: unknown): Promise<void> {
  const bytes = serialize(value)
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32LE(bytes.length)
  process.stdout.write(length)
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
}

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
