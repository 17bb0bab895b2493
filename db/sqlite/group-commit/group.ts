// The data of the write queue: a group, which is the transactions that share one commit, the
// requests that wait for the write connection, the states of the queue, and its limit while another
// process has the write lock. README.md explains each transition between the states.

export interface Group<Deferred> {
  /** Whether the group accepts only one member. */
  readonly isSingle: boolean
  /** The start of the group in milliseconds of `performance.now()`. */
  readonly since: number
  members: number
  /** The work that members deferred until just before the commit. */
  readonly deferred: Deferred[]
  /** Settles when the group ends, with the same result for all members. */
  readonly done: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * How a request uses the write connection.
 * - `member`: a transaction that shares its commit with other transactions.
 * - `own group`: a transaction with its own commit, for long work.
 * - `own group in parts`: a transaction with its own commit and many small savepoints.
 * - `exclusive`: use of the connection outside any transaction.
 */
export type Membership = 'member' | 'own group' | 'own group in parts' | 'exclusive'

export interface WaitingRequest {
  readonly as: Membership
  readonly since: number
  readonly start: () => void
  readonly refuse: (error: unknown) => void
}

export interface GroupCommitOptions<Deferred> {
  /** The maximum time that a transaction waits for a lock of another process, in milliseconds. */
  readonly maxWaitMs: number
  /**
   * The age in milliseconds at which a group accepts no further members. With 0, each transaction
   * has its own commit.
   */
  readonly maxGroupMs: number
  /**
   * Returns whether further writes will arrive soon. The group then waits for them before it
   * commits, because a commit costs as much CPU time as a small change.
   */
  isWriteComing(): boolean
  /**
   * Runs the deferred work inside the group's transaction. If the work fails, the whole group
   * fails.
   */
  beforeCommit(deferred: readonly Deferred[]): Promise<void>
  /**
   * Returns a promise that resolves once all commits so far are on the disk. Returns null when all
   * commits are already on the disk.
   */
  whenDurable(): Promise<void> | null
  /**
   * Returns a promise that must settle before a transaction begins, or null. The promise never
   * rejects.
   */
  prepareLog(): Promise<void> | null
}

export function newGroup<Deferred>(isSingle: boolean): Group<Deferred> {
  let resolve = nothing
  let reject: (error: unknown) => void = nothing
  const done = new Promise<void>((...both) => {
    ;[resolve, reject] = both
  })
  // Without this handler, a rejection would be unhandled when no member awaits `done`.
  done.catch(nothing)
  return { isSingle, since: performance.now(), members: 0, deferred: [], done, resolve, reject }
}

const nothing = (): void => undefined

/**
 * A state of the write queue. A state has a `group` while the group's transaction accepts
 * statements.
 */
export type State<Deferred> =
  | { readonly name: 'idle' }
  | { readonly name: 'preparing' }
  | { readonly name: 'locked'; readonly retry: NodeJS.Timeout }
  | { readonly name: 'member'; readonly group: Group<Deferred> }
  | { readonly name: 'open'; readonly group: Group<Deferred> }
  | { readonly name: 'finishing'; readonly group: Group<Deferred> }
  | { readonly name: 'committing' }
  | { readonly name: 'exclusive' }

export type StateName = State<never>['name']

export const transitions: Readonly<Record<StateName, readonly StateName[]>> = {
  idle: ['preparing', 'locked', 'member', 'exclusive'],
  preparing: ['idle'],
  locked: ['idle'],
  member: ['open', 'idle'],
  open: ['member', 'finishing', 'committing'],
  finishing: ['committing', 'idle'],
  committing: ['idle'],
  exclusive: ['idle'],
}

/** The limit applies once another process has had the lock for this many milliseconds. */
const briefLockMs = 250
/**
 * The maximum number of waiting requests during a long lock. More would fill the admission queue of
 * http/load-shedding and so block reads, too.
 */
const maxWaiting = 100

/**
 * A series of failed attempts to begin a transaction, because another process has the write lock.
 */
export interface Contention {
  readonly since: number
  readonly tries: number
  readonly error: unknown
}

/** Returns whether the queue must refuse further requests because of a long lock. */
export const isQueueFull = (contention: Contention | null, waiting: number): contention is Contention =>
  contention !== null && waiting >= maxWaiting && performance.now() - contention.since > briefLockMs
