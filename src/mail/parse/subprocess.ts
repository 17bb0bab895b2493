// Parses an e-mail in a separate process (subprocess.entry.ts) with limits for memory and time, so
// that a crafted e-mail cannot harm the server. A thread is not enough: a thread that runs out of
// memory ends the whole process. Two processes run at once; other e-mails wait.
import pLimit from 'p-limit'
import { entryAt, ProcessFailed, valuesOfProcess } from '../../../db/entry-file.ts'
import { MailReaderBusy, UnreadableMail } from '../failures.ts'
import type { MailSource } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import type { ReadResult } from './subprocess.entry.ts'

export interface ReadingLimits {
  /**
   * The maximum number of waiting e-mails. With more, the parser throws MailReaderBusy. Unlimited
   * by default.
   */
  maxWaiting?: number
  /** The time limit of the parsing in milliseconds. The wait before the parsing does not count. */
  maxMs?: number
  maxMiB?: number
}

const maxConcurrent = 2
/** The default limits. Usual e-mails of 30 MiB took at most 300 MiB and three seconds. */
const defaultLimits = { maxWaiting: Number.POSITIVE_INFINITY, maxMs: 30_000, maxMiB: 512 }

const limit = pLimit(maxConcurrent)
const program = entryAt(import.meta.url, './subprocess.entry')

/**
 * Parses an e-mail in a separate process. Throws UnreadableMail, also when a limit of time or
 * memory is exceeded. Throws MailReaderBusy when too many e-mails wait.
 */
export async function readInSubprocess(given: MailSource, limits: ReadingLimits): Promise<ReceivedMail> {
  const { maxWaiting, maxMs, maxMiB } = { ...defaultLimits, ...limits }
  // The sum is used, because p-limit counts a job that can start at once as pending until the next
  // microtask.
  if (limit.activeCount + limit.pendingCount >= maxConcurrent + maxWaiting)
    throw new MailReaderBusy('Other e-mails are being read.')
  return limit(() => readInProcess(given, maxMs, maxMiB))
}

async function readInProcess(given: MailSource, maxMs: number, maxMiB: number): Promise<ReceivedMail> {
  try {
    for await (const answer of valuesOfProcess<ReadResult>(program, given, { maxHeapMiB: maxMiB, maxMs })) {
      if ('mail' in answer) return answer.mail
      throw 'unreadable' in answer ? new UnreadableMail(answer.unreadable, answer) : new Error(answer.failed)
    }
    throw new Error('The process has sent no e-mail.')
  } catch (cause) {
    if (!(cause instanceof ProcessFailed)) throw cause
    if (!cause.isStarted) throw new MailReaderBusy('No process can be started to read the e-mail.', { cause })
    throw new UnreadableMail('The e-mail takes too much time or memory to be read.', { isMail: true, cause })
  }
}
