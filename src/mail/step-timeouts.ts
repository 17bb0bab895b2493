// Time for each step of a conversation: a server that hangs, whatever the reason, is left.
import { MailboxFailed } from './failures.ts'

export type StepTimer = <T>(step: Promise<T>, patienceMs?: number) => Promise<T>

/** Steps fail with MailboxFailed after `timeoutMs`, or when `signal` says so; `leave` ends the connection then. */
export function createStepTimer(timeoutMs: number, signal: AbortSignal | undefined, leave: () => void): StepTimer {
  return async (step, patienceMs = timeoutMs) => {
    // It goes on failing after we have left, and nobody is there to hear it.
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
