// Reads a mail in a thread of its own (parse.worker.ts) with limits of memory and time: what a mail was made to take, it takes
// from that thread and not from the server. A few at once in the process; the others wait for their turn.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Busy, Unreadable } from './failures.ts'
import type { Given } from './parse.form.ts'
import type { ReceivedMail } from './parse.read.ts'
import type { Answer } from './parse.worker.ts'

const atOnce = 2
/** The largest that was tried took 200 MiB and two seconds. */
const memoryMiB = 512
const patienceMs = 30_000

let running = 0
const waiting: (() => void)[] = []

/** Throws Unreadable, also for what takes too much, and Busy when more than `mostWaiting` are waiting already. */
export async function readApart(
  given: Given,
  { mostWaiting = Number.POSITIVE_INFINITY, mostMs = patienceMs }: { mostWaiting?: number; mostMs?: number },
): Promise<ReceivedMail> {
  if (running >= atOnce) {
    if (waiting.length >= mostWaiting) throw new Busy('Other e-mails are being read.')
    // Whoever ends hands its place on, so the number of those that run stays.
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  try {
    return await readInThread(given, mostMs)
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

async function readInThread(given: Given, mostMs: number): Promise<ReceivedMail> {
  const thread = startThread(given)
  let patience: NodeJS.Timeout | undefined
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      thread.once('message', resolve)
      thread.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch(error) : error),
      )
      thread.once('exit', () => reject(tooMuch()))
      patience = setTimeout(() => reject(tooMuch()), mostMs)
    })
    if ('unreadable' in answer) throw new Unreadable(answer.unreadable)
    return {
      ...answer.mail,
      // On the way buffers become plain bytes.
      attachments: answer.mail.attachments.map(({ bytes, ...each }) => ({
        ...each,
        bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      })),
    }
  } finally {
    clearTimeout(patience)
    await thread.terminate()
  }
}

const tooMuch = (cause?: Error): Unreadable =>
  new Unreadable('The e-mail takes too much time or memory to be read.', { cause })

/** Copies bytes once, for whoever gave them keeps them, and hands the copies over. Of the environment it gets nothing. */
function startThread({ raw, fields }: Given): Worker {
  const copies: ArrayBuffer[] = []
  const copied = (bytes: Uint8Array): Uint8Array => {
    const copy = new Uint8Array(bytes)
    copies.push(copy.buffer)
    return copy
  }
  const workerData: Given = {
    raw: raw && copied(raw),
    fields: Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value : copied(value)]),
    ),
  }
  const { program, execArgv } = worker()
  return new Worker(program, {
    workerData,
    transferList: copies,
    env: {},
    execArgv,
    resourceLimits: { maxOldGenerationSizeMb: memoryMiB },
  })
}

/** Compiled it runs as it is; from the sources, it needs what compiles them. */
function worker(): { program: URL; execArgv: string[] } {
  const here = import.meta.url
  if (!here.endsWith('.ts')) return { program: new URL('./parse.worker.js', here), execArgv: [] }
  const compiler = pathToFileURL(createRequire(here).resolve('tsx')).href
  return { program: new URL('./parse.worker.ts', here), execArgv: ['--import', compiler] }
}
