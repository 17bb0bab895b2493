// Those who share one commit, and what they wait for.

export interface Group<Late> {
  /** It has one member and takes no other. */
  readonly isOwn: boolean
  readonly since: number
  members: number
  /** What is to be finished before the commit. */
  readonly late: Late[]
  /** Settles for all of them at once. */
  readonly done: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** `own group in parts`: savepoints follow each other in it, and each changes little. */
export type Membership = 'member' | 'own group' | 'own group in parts' | 'alone'

/** Who waits for the connection, and what for. */
export interface Waiting {
  readonly as: Membership
  readonly since: number
  readonly start: () => void
  readonly refuse: (error: unknown) => void
}

export interface Groups<Late> {
  /** Settles once all that was committed until now is on the disk. Null when it is. */
  settled(): Promise<void> | null
  /** A promise to wait for before a transaction begins, if any. It never rejects. */
  prepare(): Promise<void> | null
  /** How long a transaction waits for a lock that another process holds. */
  readonly waitMs: number
  /** A group that has lasted so long takes nobody more, and waits for nobody: its first waits for its last. With 0 there are none. */
  readonly maxMsLength: number
  /** Whether others are about to write. A commit costs the processor as much as a small change does. */
  awaits(): boolean
  /** Does what was put off. The connection is its own until then; what it has thrown keeps all of the group from being kept. */
  finish(late: readonly Late[]): Promise<void>
}

export function newGroup<Late>(isOwn: boolean): Group<Late> {
  let resolve = nothing
  let reject: (error: unknown) => void = nothing
  const done = new Promise<void>((...both) => {
    ;[resolve, reject] = both
  })
  // Nobody may be left in it who would hear.
  done.catch(nothing)
  return { isOwn, since: performance.now(), members: 0, late: [], done, resolve, reject }
}

const nothing = (): void => undefined
