// Reads a mail in a process of its own (subprocess.entry.ts) with limits of memory and time: what a mail was made to take, it takes
// from that process and not from the server. No thread: one that runs out of memory in the midst of a pattern or a collection
// takes the whole server with it. A few run at once; the others wait for their turn.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { deserialize, serialize } from 'node:v8'
import pLimit from 'p-limit'
import { MailReaderBusy, UnreadableMail } from '../failures.ts'
import type { MailFields, MailSource } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import type { ReadResult } from './subprocess.entry.ts'

export interface ReadingLimits {
  /** How many may be waiting for their turn when this one comes; without it, it waits behind any number. Beyond: Busy. */
  maxWaiting?: number
  /** How long it may take, once it is its turn. */
  maxMs?: number
  maxMiB?: number
}

const maxConcurrent = 2
/** Of 30 MiB, the usual kinds took 300 MiB and three seconds at most. */
const defaultLimits = { maxWaiting: Number.POSITIVE_INFINITY, maxMs: 30_000, maxMiB: 512 }

const limit = pLimit(maxConcurrent)

/** Throws Unreadable, also for what takes too much, and Busy. */
export async function readInSubprocess(given: MailSource, limits: ReadingLimits): Promise<ReceivedMail> {
  const { maxWaiting, maxMs, maxMiB } = { ...defaultLimits, ...limits }
  // A job that could start at once is pending until the next microtask.
  if (limit.activeCount + limit.pendingCount >= maxConcurrent + maxWaiting)
    throw new MailReaderBusy('Other e-mails are being read.')
  return limit(() => readInProcess(given, maxMs, maxMiB))
}

async function readInProcess(given: MailSource, maxMs: number, maxMiB: number): Promise<ReceivedMail> {
  // Of the environment it needs nothing, so it gets nothing.
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(
    process.execPath,
    [`--max-old-space-size=${maxMiB}`, ...program()],
    { env: {}, stdio: ['pipe', 'pipe', 'ignore'] },
  )
  const patience = setTimeout(() => child.kill('SIGKILL'), maxMs)
  try {
    // One that ends early has its own way to say so.
    child.stdin.on('error', () => undefined)
    child.stdin.write(encodeFields(given.fields))
    child.stdin.end(given.raw ?? undefined)
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const code = await new Promise<number | null>((resolve, reject) =>
      child
        .once('error', (cause) =>
          reject(new MailReaderBusy('No process can be started to read the e-mail.', { cause })),
        )
        .once('close', resolve),
    )
    if (code !== 0) throw new UnreadableMail('The e-mail takes too much time or memory to be read.', { isMail: true })
    const answer = deserialize(Buffer.concat(chunks)) as ReadResult
    if ('mail' in answer) return answer.mail
    throw 'unreadable' in answer ? new UnreadableMail(answer.unreadable, answer) : new Error(answer.failed)
  } finally {
    clearTimeout(patience)
    child.kill('SIGKILL')
  }
}

/** What stands before the bytes of the mail, with its length in front; the bytes themselves are not copied. */
function encodeFields(fields: MailFields): Buffer {
  const packed = serialize(fields)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(packed.length)
  return Buffer.concat([length, packed])
}

/** Compiled it runs as it is; from the sources, with what compiles them. */
function program(): string[] {
  const here = import.meta.url
  const file = (ending: string): string => fileURLToPath(new URL(`./subprocess.entry.${ending}`, here))
  return here.endsWith('.ts') ? ['--import', import.meta.resolve('tsx'), file('ts')] : [file('js')]
}
