// Limits the time of each step of an IMAP conversation, so that a hanging server cannot block the
// poll.
import { MailboxFailed } from './failures.ts'

export type StepTimer = <T>(step: Promise<T>, patienceMs?: number) => Promise<T>

/**
 * Returns a function that waits for one step. The step fails with MailboxFailed after `timeoutMs`
 * milliseconds or when `signal` aborts. `leave` then closes the connection.
 */
export function createStepTimer(timeoutMs: number, signal: AbortSignal | undefined, leave: () => void): StepTimer {
  return async (step, patienceMs = timeoutMs) => {
    // Prevents an unhandled rejection: `leave` rejects the step when nothing awaits it any more.
    step.catch(() => undefined)
    let end = (): void => undefined
    const isOver = new Promise<never>((_, reject) => {
      const give = (reason: string): void => {
        reject(new MailboxFailed(reason))
        leave()
      }
      const stop = (): void => give('The poll of the mailbox was stopped.')
      const timer = setTimeout(() => give('The mailbox did not answer in time.'), patienceMs)
      signal?.addEventListener('abort', stop, { once: true })
      end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
      }
      if (signal?.aborted) stop()
    })
    try {
      return await Promise.race([step, isOver])
    } finally {
      end()
    }
  }
}
