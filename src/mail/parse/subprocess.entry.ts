// Entry point of the process that parses one e-mail (subprocess.ts) and yields the result.
import { processInput, yieldFromProcess } from '../../../db/entry-file.ts'
import { UnreadableMail } from '../failures.ts'
import type { MailSource } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import { MailTextDecoder } from './text-decoder.ts'

export type ReadResult = { mail: ReceivedMail } | { unreadable: string; isMail: boolean } | { failed: string }

/**
 * Replaces Blob in this process, because the Blob of Node is slow. The parser joins the lines of a
 * text with a Blob, and Node reads these lines one by one: 30 MiB took many seconds. No other code
 * in this process uses Blob.
 */
class SimpleBlob {
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
Object.assign(globalThis, { Blob: SimpleBlob })

// The parser calls the global TextDecoder, which it takes when it is loaded.
Object.assign(globalThis, { TextDecoder: MailTextDecoder })
const { readMailSource } = await import('./fields.ts')

async function answer(given: MailSource): Promise<ReadResult> {
  try {
    return { mail: await readMailSource(given) }
  } catch (error) {
    if (error instanceof UnreadableMail) return { unreadable: error.message, isMail: error.isMail }
    return { failed: error instanceof Error ? `${error.stack}` : String(error) }
  }
}

await yieldFromProcess(await answer(await processInput<MailSource>()))
