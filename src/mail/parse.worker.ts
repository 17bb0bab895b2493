// The thread a mail is read in (parse.thread.ts): one mail, one answer, and it ends.
import { parentPort, workerData } from 'node:worker_threads'
import { Unreadable } from './failures.ts'
import { type Given, read } from './parse.form.ts'
import type { ReceivedMail } from './parse.read.ts'

export type Answer = { mail: ReceivedMail } | { unreadable: string }

/**
 * The parser joins the lines of a text by a Blob of them, which Node reads line by line, each through the system: 30 MiB took
 * many seconds. In this thread, where nobody else asks for one, a Blob is this: its parts side by side.
 */
class Joined {
  readonly #parts: readonly (string | ArrayBuffer | Uint8Array)[]

  constructor(parts: readonly (string | ArrayBuffer | Uint8Array)[]) {
    this.#parts = parts
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const size = this.#parts.reduce(
      (sum, part) => sum + (typeof part === 'string' ? Buffer.byteLength(part) : part.byteLength),
      0,
    )
    const joined = new Uint8Array(size)
    let at = 0
    for (const part of this.#parts) {
      const bytes =
        typeof part === 'string' ? Buffer.from(part) : part instanceof ArrayBuffer ? new Uint8Array(part) : part
      joined.set(bytes, at)
      at += bytes.byteLength
    }
    return joined.buffer
  }
}
Object.assign(globalThis, { Blob: Joined })

async function answer(): Promise<Answer> {
  try {
    return { mail: await read(workerData as Given) }
  } catch (error) {
    if (error instanceof Unreadable) return { unreadable: error.message }
    throw error
  }
}

const given = await answer()
const files = 'mail' in given ? given.mail.attachments.map(({ bytes }) => bytes.buffer as ArrayBuffer) : []
parentPort?.postMessage(given, [...new Set(files)])
