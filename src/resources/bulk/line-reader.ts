// Hands out the lines of a body in batches, as they arrive.
import type { SentLine, SentLines } from '../../contract/input/sent.ts'

export interface LineReader {
  /**
   * Returns the lines that have arrived, at least one, up to `most` lines of `maxBytes` together.
   * Returns an empty list after the last line, and when the reader is stopped.
   */
  available(most: number): Promise<SentLine[]>
  /**
   * Waits for `count` lines. Returns fewer at the end of the body, after `maxBytes`, and when the
   * reader is stopped.
   */
  exactly(count: number): Promise<SentLine[]>
  /** Ends the wait for lines. */
  stop(): void
  isStopped(): boolean
  close(): void
}

/** The limit of a batch. A long transaction delays other writers. */
const maxBytes = 1024 * 1024

export function createLineReader(lines: SentLines): LineReader {
  const chunks = lines[Symbol.asyncIterator]()
  let waiting: readonly SentLine[] = []
  let at = 0
  let next: Promise<IteratorResult<readonly SentLine[]>> | undefined
  let isStopped = false
  let endWait = (): void => undefined

  /** Waits for lines. Returns whether one has arrived. */
  async function fill(): Promise<boolean> {
    while (at >= waiting.length && !isStopped) {
      next ??= chunks.next()
      const arriving = next
      const found = await new Promise<IteratorResult<readonly SentLine[]> | null>((resolve, reject) => {
        endWait = () => resolve(null)
        arriving.then(resolve, reject)
      })
      if (found === null || found.done) return false
      next = undefined
      waiting = found.value
      at = 0
    }
    return !isStopped
  }

  function take(most: number, room: number): SentLine[] {
    const from = at
    let left = room
    for (let line = waiting[at]; line && at - from < most; line = waiting[at]) {
      left -= line.bytes.length
      if (left < 0 && (at > from || room < maxBytes)) break
      at++
    }
    return waiting.slice(from, at)
  }

  return {
    available: async (most) => ((await fill()) ? take(most, maxBytes) : []),
    async exactly(count) {
      const taken: SentLine[] = []
      let room = maxBytes
      while (taken.length < count && (await fill())) {
        const more = take(count - taken.length, room)
        if (more.length === 0) break
        taken.push(...more)
        room -= more.reduce((sum, { bytes }) => sum + bytes.length, 0)
      }
      return taken
    },
    stop() {
      isStopped = true
      endWait()
    },
    isStopped: () => isStopped,
    close() {
      // A read in progress ends with the request, and its error is of no interest any more.
      next?.catch(() => undefined)
      chunks.return?.()?.catch(() => undefined)
    },
  }
}
