// Parses an e-mail in a process of its own (subprocess.entry.ts) with limits of memory and time, so
// that a crafted e-mail cannot harm the server. A thread would not do: one that runs out of memory
// ends the whole process. Two run at once; the others wait.
import { deserialize, serialize } from 'node:v8'
import pLimit from 'p-limit'
import { entryAt, startPipedProcess } from '../../../db/entry-file.ts'
import { MailReaderBusy, UnreadableMail } from '../failures.ts'
import type { MailFields, MailSource } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import type { ReadResult } from './subprocess.entry.ts'

export interface ReadingLimits {
  /** Throws MailReaderBusy when more than this number are waiting. Unlimited by default. */
  maxWaiting?: number
  /** Time limit of the parsing, without the wait before it. */
  maxMs?: number
  maxMiB?: number
}

const maxConcurrent = 2
/** For e-mails of 30 MiB, usual ones took at most 300 MiB and three seconds. */
const defaultLimits = { maxWaiting: Number.POSITIVE_INFINITY, maxMs: 30_000, maxMiB: 512 }

const limit = pLimit(maxConcurrent)
const program = entryAt(import.meta.url, './subprocess.entry')

/** Throws UnreadableMail, also when a limit is exceeded, and MailReaderBusy. */
export async function readInSubprocess(given: MailSource, limits: ReadingLimits): Promise<ReceivedMail> {
  const { maxWaiting, maxMs, maxMiB } = { ...defaultLimits, ...limits }
  // p-limit counts a job that can start at once as pending until the next microtask.
  if (limit.activeCount + limit.pendingCount >= maxConcurrent + maxWaiting)
    throw new MailReaderBusy('Other e-mails are being read.')
  return limit(() => readInProcess(given, maxMs, maxMiB))
}

async function readInProcess(given: MailSource, maxMs: number, maxMiB: number): Promise<ReceivedMail> {
  const child = startPipedProcess(program, maxMiB)
  const patience = setTimeout(() => child.kill('SIGKILL'), maxMs)
  try {
    // A process that ends early reports that by its exit code.
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

/** The fields with their length in front; the bytes of the e-mail follow uncopied. */
function encodeFields(fields: MailFields): Buffer {
  const packed = serialize(fields)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(packed.length)
  return Buffer.concat([length, packed])
}
