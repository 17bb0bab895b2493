// A group: the transactions that share one commit, and the requests that wait in line for the
// connection.

export interface Group<Deferred> {
  /** It has one member and takes no other. */
  readonly isSingle: boolean
  /** Milliseconds of `performance.now()` at its first member. */
  readonly since: number
  members: number
  /** The work that its members left for the moment before the commit. */
  readonly deferred: Deferred[]
  /** Settles for all members at once. */
  readonly done: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * `member`: shares its commit with others. `own group`: has a commit of its own, for long work.
 * `own group in parts`: the same for a sequence of savepoints that each change little. `exclusive`:
 * has the connection outside any transaction.
 */
export type Membership = 'member' | 'own group' | 'own group in parts' | 'exclusive'

export interface WaitingRequest {
  readonly as: Membership
  readonly since: number
  readonly start: () => void
  readonly refuse: (error: unknown) => void
}

export interface GroupCommitOptions<Deferred> {
  /** How long a transaction waits for a lock that another process holds, in milliseconds. */
  readonly maxWaitMs: number
  /**
   * A group this old takes no further member and waits for none. 0: each transaction has its own
   * commit.
   */
  readonly maxGroupMs: number
  /**
   * Whether further writes are about to come. Waiting for them saves commits; a commit costs as
   * much CPU as a small change.
   */
  isWriteComing(): boolean
  /**
   * Does the deferred work inside the group's transaction. If it rejects, the whole group fails.
   */
  beforeCommit(deferred: readonly Deferred[]): Promise<void>
  /** Settles once everything committed so far is on the disk; null when it already is. */
  whenDurable(): Promise<void> | null
  /** A promise to wait for before a transaction begins, or null. It never rejects. */
  prepareLog(): Promise<void> | null
}

export function newGroup<Deferred>(isSingle: boolean): Group<Deferred> {
  let resolve = nothing
  let reject: (error: unknown) => void = nothing
  const done = new Promise<void>((...both) => {
    ;[resolve, reject] = both
  })
  // All members may have rolled back, and then nothing else handles the rejection.
  done.catch(nothing)
  return { isSingle, since: performance.now(), members: 0, deferred: [], done, resolve, reject }
}

const nothing = (): void => undefined
