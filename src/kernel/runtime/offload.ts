// Runs a module in a subprocess, for CPU-bound work that would delay other requests. A worker
// thread is not an alternative: it can crash the server when its memory is exhausted, cannot always
// be stopped, and has the server's priority. A subprocess can be killed and has a lower priority. A
// subprocess gets no environment variables, so it has no secrets.
import type { ChildProcess } from 'node:child_process'
import { getPriority, setPriority } from 'node:os'
import { entryAt, startMessagingProcess } from '../../../db/entry-file.ts'
import { createFairQueue, type QueueKey, type Refusal } from './fair-queue.ts'
import type { Job, OffloadOutcome, Runnable } from './offload.entry.ts'

export interface QueueLimits {
  maxRunning: number
  maxWaiting: number
  maxWaitingPerKey: number
  maxWaitMs: number
}

export interface OffloadLimits extends QueueLimits {
  /**
   * The maximum milliseconds of one job, counted from the moment the job is sent to a subprocess.
   */
  maxRunMs: number
  maxHeapMiB: number
  /** A subprocess without a job is killed after this number of milliseconds. */
  idleMs: number
}

/** Identifies a module for `run`, with the types of its input and result. */
export interface Program<Input, Result> {
  readonly module: string
  readonly types?: (input: Input) => Result
}

export interface Offload {
  /**
   * Runs a job and returns its result. Throws `OffloadError` if the job did not finish. Throws a
   * plain Error with the stack trace if the module threw.
   */
  run<Input, Result>(program: Program<Input, Result>, input: Input, caller: QueueKey): Promise<Result>
  /** Kills the subprocesses and rejects all running and waiting jobs. */
  close(): Promise<void>
}

export class OffloadError extends Error {
  constructor(readonly reason: Refusal | 'timed_out' | 'crashed') {
    super(`The job was not done: ${reason}.`)
    this.name = 'OffloadError'
  }
}

/**
 * The default limits. The longest waiting time and run time together stay below 30 s, because a
 * connection is closed after 30 s without data (connection-limits.ts).
 */
const usual: OffloadLimits = {
  maxRunning: 2,
  maxWaiting: 32,
  maxWaitingPerKey: 4,
  maxWaitMs: 8_000,
  maxRunMs: 20_000,
  maxHeapMiB: 256,
  idleMs: 10_000,
}
/**
 * How much the priority of a subprocess is lowered, in units of `nice`. The server process thus
 * gets CPU time first.
 */
const niceness = 10
const lowestPriority = 19

const childEntry = entryAt(import.meta.url, './offload.entry')

/**
 * Returns the program in a module next to the calling module. `programAt<typeof
 * Entry>(import.meta.url, './x.entry')` refers to `x.entry.ts`, or to `x.entry.js` after
 * compilation.
 */
export const programAt = <Entry extends Runnable>(
  base: string,
  name: `${string}.entry`,
): Program<Parameters<Entry['run']>[0], Awaited<ReturnType<Entry['run']>>> => ({
  module: entryAt(base, name).href,
})

/**
 * Returns a queue that lets at most `maxRunning` jobs run, one of each caller, and the callers take
 * turns. `enter` resolves when the job may begin, with a function to call when the job ends.
 */
export function createFairPool(limits: QueueLimits) {
  const waiting = createFairQueue(limits, (reason) => new OffloadError(reason))
  const running = new Set<QueueKey>()
  function beginNext(): void {
    while (running.size < limits.maxRunning) {
      const caller = waiting.next(running)
      if (caller === undefined) return
      running.add(caller)
    }
  }
  return {
    async enter(caller: QueueKey): Promise<() => void> {
      const turn = waiting.wait(caller)
      beginNext()
      await turn
      return () => {
        if (running.delete(caller)) beginNext()
      }
    },
    close: waiting.close,
  }
}

/** Creates the pool of subprocesses. The first job starts the first subprocess. */
export function createOffload(changes: Partial<OffloadLimits> = {}): Offload {
  const limits = { ...usual, ...changes }
  const queue = createFairPool(limits)
  const idle: { child: ChildProcess; end: NodeJS.Timeout }[] = []
  const all = new Set<ChildProcess>()

  function begun(): ChildProcess {
    const child = startMessagingProcess(childEntry, limits.maxHeapMiB)
    all.add(child)
    child.once('exit', () => forget(child))
    // Occurs, for example, when the system has no free file descriptors. `outcomeOf` gets the same
    // event and rejects the job.
    child.on('error', () => forget(child))
    // Only the timer of a running job keeps the server process alive; an idle child does not.
    child.unref()
    child.channel?.unref()
    lowerPriority(child)
    return child
  }

  function forget(child: ChildProcess): void {
    all.delete(child)
    const at = idle.findIndex((each) => each.child === child)
    if (at >= 0) clearTimeout(idle.splice(at, 1)[0]?.end)
  }

  function rest(child: ChildProcess): void {
    if (!all.has(child)) return
    idle.push({ child, end: setTimeout(() => kill(child), limits.idleMs).unref() })
  }

  function taken(): ChildProcess {
    const last = idle.pop()
    if (last === undefined) return begun()
    clearTimeout(last.end)
    return last.child
  }

  function kill(child: ChildProcess): void {
    forget(child)
    child.kill('SIGKILL')
  }

  return {
    async run<Input, Result>({ module }: Program<Input, Result>, input: Input, caller: QueueKey): Promise<Result> {
      const leave = await queue.enter(caller)
      try {
        const child = taken()
        const outcome = await outcomeOf(child, { module, input }, limits.maxRunMs).catch((error: unknown) => {
          kill(child)
          throw error
        })
        rest(child)
        if ('failure' in outcome) throw new Error(`A subprocess failed: ${outcome.failure}`)
        return outcome.result as Result
      } finally {
        leave()
      }
    },
    async close() {
      queue.close()
      const ended = [...all].map((child) => new Promise((resolve) => child.once('exit', resolve)))
      for (const child of all) {
        child.ref()
        kill(child)
      }
      await Promise.all(ended)
    },
  }
}

/**
 * Sends the job to a child process and returns its outcome. Rejects when the child exits, cannot be
 * reached, or takes longer than `maxMs`.
 */
function outcomeOf(child: ChildProcess, job: Job, maxMs: number): Promise<OffloadOutcome> {
  return new Promise<OffloadOutcome>((resolve, reject) => {
    const fail = (reason: 'timed_out' | 'crashed') => (): void => settle(() => reject(new OffloadError(reason)))
    const crashed = fail('crashed')
    const answered = (outcome: OffloadOutcome): void => settle(() => resolve(outcome))
    const patience = setTimeout(fail('timed_out'), maxMs)
    function settle(then: () => void): void {
      clearTimeout(patience)
      child.off('message', answered).off('exit', crashed).off('error', crashed)
      then()
    }
    child.on('message', answered).on('exit', crashed).on('error', crashed)
    // A child that failed to start has no channel to send on.
    if (child.pid === undefined) return
    child.send(job, (error) => {
      if (error !== null) crashed()
    })
  })
}

function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    setPriority(pid, Math.min(getPriority() + niceness, lowestPriority))
  } catch {
    // The child has already exited, or the system does not allow the change. In the second case the
    // child keeps the normal priority.
  }
}
