// A fair queue for the jobs of subprocesses (offload.ts), limited in length and waiting time. Each
// caller has at most one running job, and callers take turns. A caller with many jobs therefore
// delays only that caller's jobs.

export type OffloadCaller = string | number

export interface QueueLimits {
  maxRunning: number
  maxWaiting: number
  maxWaitingPerCaller: number
  maxWaitMs: number
}

export type Refusal = 'caller_busy' | 'queue_full' | 'waited_too_long' | 'closed'

export interface FairQueue {
  /**
   * Resolves when the job may begin, with a function that the caller must call when the job ends.
   * When the queue refuses the job, rejects with the error that `refused` returns.
   */
  enter(caller: OffloadCaller): Promise<() => void>
  /** Rejects all waiting jobs, and every job that enters later. */
  close(): void
}

interface Job {
  begin: () => void
  refuse: (why: Refusal) => void
}

export function createFairQueue(limits: QueueLimits, refused: (why: Refusal) => Error): FairQueue {
  /** The waiting jobs by caller. The first caller of the map is served next. */
  const waiting = new Map<OffloadCaller, Job[]>()
  const running = new Set<OffloadCaller>()
  let isClosed = false

  const size = (): number => [...waiting.values()].reduce((sum, jobs) => sum + jobs.length, 0)

  /** Moves the caller to the end of the queue, with `jobs` as its waiting jobs. */
  function replace(caller: OffloadCaller, jobs: Job[]): void {
    waiting.delete(caller)
    if (jobs.length > 0) waiting.set(caller, jobs)
  }

  function next(): void {
    for (const [caller, [first, ...rest]] of [...waiting]) {
      if (running.size >= limits.maxRunning) return
      if (first === undefined || running.has(caller)) continue
      replace(caller, rest)
      running.add(caller)
      first.begin()
    }
  }

  function leave(caller: OffloadCaller, job: Job): void {
    const jobs = waiting.get(caller)
    const at = jobs?.indexOf(job) ?? -1
    if (at >= 0) jobs?.splice(at, 1)
    if (jobs?.length === 0) waiting.delete(caller)
  }

  function reasonToRefuse(caller: OffloadCaller): Refusal | null {
    if (isClosed) return 'closed'
    if ((waiting.get(caller)?.length ?? 0) >= limits.maxWaitingPerCaller) return 'caller_busy'
    return size() >= limits.maxWaiting ? 'queue_full' : null
  }

  return {
    enter: (caller) =>
      new Promise((resolve, reject) => {
        const reason = reasonToRefuse(caller)
        if (reason !== null) return reject(refused(reason))
        const job: Job = {
          begin() {
            clearTimeout(patience)
            let isOver = false
            resolve(() => {
              if (isOver) return
              isOver = true
              running.delete(caller)
              next()
            })
          },
          refuse(why) {
            clearTimeout(patience)
            leave(caller, job)
            reject(refused(why))
          },
        }
        const patience = setTimeout(() => job.refuse('waited_too_long'), limits.maxWaitMs)
        waiting.set(caller, [...(waiting.get(caller) ?? []), job])
        next()
      }),
    close() {
      isClosed = true
      for (const job of [...waiting.values()].flat()) job.refuse('closed')
    },
  }
}
