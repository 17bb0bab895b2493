// Queues requests for the single write connection, in the order of arrival. Transactions that
// arrive together form a group with one commit. Each member resolves after the commit is on the
// disk. README.md describes the states.

import type { QueryResult } from 'kysely'
import { isBusy, retryDelayMs, retryWhileBusy } from '../busy-retry.ts'
import type { SqlQuery } from '../prepared-statements.ts'
import {
  type Contention,
  type Group,
  type GroupCommitOptions,
  isQueueFull,
  type Membership,
  newGroup,
  type State,
  transitions,
  type WaitingRequest,
} from './group.ts'
import type { ExclusiveConnection, WriteQueue, WriteTransaction } from './types.ts'
import type { WriteConnection } from './write-connection.ts'

export const createWriteQueue = <Deferred>(
  connection: WriteConnection,
  options: GroupCommitOptions<Deferred>,
): WriteQueue<Deferred> => new GroupCommitQueue(connection, options)

class GroupCommitQueue<Deferred> implements WriteQueue<Deferred> {
  readonly #connection: WriteConnection
  readonly #options: GroupCommitOptions<Deferred>
  #state: State<Deferred> = { name: 'idle' }
  #waiting: WaitingRequest[] = []
  #contention: Contention | null = null
  #isClosed = false
  /** Whether `prepareLog` has finished for the next transaction. */
  #isLogPrepared = false
  /**
   * Whether `#dispatch` is running. A request can end while `#dispatch` starts it, which would call
   * `#dispatch` again.
   */
  #isDispatching = false
  #isCommitScheduled = false

  constructor(connection: WriteConnection, options: GroupCommitOptions<Deferred>) {
    this.#connection = connection
    this.#options = options
  }

  begin(as: Exclude<Membership, 'exclusive'>): Promise<WriteTransaction> {
    return this.#inLine(as, () => this.#beginMember(this.#currentGroup()))
  }

  write<R>(query: SqlQuery): Promise<QueryResult<R>> {
    return this.#inLine('member', () => this.#writeAsMember<R>(this.#currentGroup(), query))
  }

  runOutside<R>(query: SqlQuery): Promise<QueryResult<R>> {
    return this.#inLine('exclusive', async () => {
      try {
        return await retryWhileBusy(() => this.#connection.run<R>(query), this.#options.maxWaitMs)
      } finally {
        this.#release()
        await this.#options.whenDurable()
      }
    })
  }

  exclusive(): Promise<ExclusiveConnection> {
    return this.#inLine('exclusive', () => ({
      run: <R>(query: SqlQuery) => this.#connection.run<R>(query),
      release: () => this.#release(),
    }))
  }

  isIdle(): boolean {
    return ['idle', 'preparing', 'locked'].includes(this.#state.name) && this.#waiting.length === 0
  }

  defer(work: readonly Deferred[]): void {
    if (this.#isClosed) throw closedError()
    if (this.#state.name !== 'member') throw new Error('Work cannot be deferred outside of a transaction.')
    for (const each of work) this.#state.group.deferred.push(each)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const refused = this.#waiting
    this.#waiting = []
    if (this.#state.name === 'locked') {
      clearTimeout(this.#state.retry)
      this.#moveTo({ name: 'idle' })
    }
    if (this.#state.name === 'member') this.#abortMember(this.#state.group)
    for (const each of refused) each.refuse(closedError())
    await this.#commitGroup()
  }

  #moveTo(next: State<Deferred>): void {
    const { name } = this.#state
    if (!transitions[name].includes(next.name))
      throw new Error(`The write queue cannot go from ${name} to ${next.name}.`)
    this.#state = next
  }

  #group(): Group<Deferred> | null {
    return 'group' in this.#state ? this.#state.group : null
  }

  #currentGroup(): Group<Deferred> {
    const group = this.#group()
    if (group === null) throw new Error(`The write queue has no group while it is ${this.#state.name}.`)
    return group
  }

  /** Queues a request. Runs `start` when the connection is free, and settles with its result. */
  #inLine<T>(as: Membership, start: () => T | PromiseLike<T>): Promise<T> {
    return new Promise((resolve, refuse) => {
      this.#enqueue({
        as,
        since: performance.now(),
        refuse,
        start: () => {
          try {
            resolve(start())
          } catch (error) {
            this.#giveUpConnection()
            refuse(error)
          }
        },
      })
    })
  }

  #enqueue(request: WaitingRequest): void {
    if (this.#isClosed) request.refuse(closedError())
    else if (isQueueFull(this.#contention, this.#waiting.length)) request.refuse(this.#contention.error)
    else this.#waiting.push(request)
    this.#dispatch()
  }

  /**
   * Starts waiting requests while the connection is free. Ends a group that accepts no further
   * members.
   */
  #dispatch(): void {
    if (this.#isDispatching) return
    this.#isDispatching = true
    for (;;) {
      const state = this.#state
      const next = this.#waiting[0]
      if (state.name === 'open' && this.#mustEnd(state.group, next)) this.#endGroup(state.group)
      else if ((state.name !== 'open' && state.name !== 'idle') || next === undefined) break
      else if (this.#takeConnection(next)) {
        this.#waiting.shift()
        next.start()
      }
    }
    this.#isDispatching = false
    if (this.#state.name === 'open') this.#scheduleCommit()
  }

  #mustEnd(group: Group<Deferred>, next: WaitingRequest | undefined): boolean {
    if (group.isSingle || this.#connection.isClosedToMembers()) return true
    return next !== undefined && !(next.as === 'member' && this.#takesMembers(group))
  }

  #takesMembers({ since }: Group<Deferred>): boolean {
    return performance.now() - since < this.#options.maxGroupMs
  }

  #takeConnection({ as }: WaitingRequest): boolean {
    if (as === 'exclusive') this.#moveTo({ name: 'exclusive' })
    else if (this.#state.name === 'open') this.#moveTo({ name: 'member', group: this.#state.group })
    else return this.#beginGroup(as)
    return true
  }

  #beginGroup(as: Membership): boolean {
    if (!this.#isLogReady()) return false
    try {
      this.#connection.begin(as === 'own group' ? 'file' : 'memory')
    } catch (error) {
      if (isBusy(error)) this.#waitForLock(error)
      else this.#refuseTransactions(error, () => true)
      return false
    }
    this.#contention = null
    this.#moveTo({ name: 'member', group: newGroup(as !== 'member') })
    return true
  }

  #isLogReady(): boolean {
    const preparing = this.#isLogPrepared ? null : this.#options.prepareLog()
    this.#isLogPrepared = false
    if (preparing === null) return true
    this.#moveTo({ name: 'preparing' })
    void preparing.then(() => {
      this.#isLogPrepared = true
      this.#moveTo({ name: 'idle' })
      this.#dispatch()
    })
    return false
  }

  #refuseTransactions(error: unknown, isMeant: (request: WaitingRequest) => boolean): void {
    const refused = this.#waiting.filter((each) => each.as !== 'exclusive' && isMeant(each))
    this.#waiting = this.#waiting.filter((each) => !refused.includes(each))
    for (const each of refused) each.refuse(error)
  }

  /**
   * Refuses transactions that have waited for `maxWaitMs`, and schedules the next attempt for the
   * rest.
   */
  #waitForLock(error: unknown): void {
    const now = performance.now()
    const { since, tries } = this.#contention ?? { since: now, tries: -1 }
    this.#contention = { since, tries: tries + 1, error }
    this.#refuseTransactions(error, (each) => now - each.since >= this.#options.maxWaitMs)
    if (!this.#waiting.some(({ as }) => as !== 'exclusive')) {
      this.#contention = null
      return
    }
    const retry = setTimeout(
      () => {
        this.#moveTo({ name: 'idle' })
        this.#dispatch()
      },
      retryDelayMs(tries + 1),
    )
    this.#moveTo({ name: 'locked', retry })
  }

  #beginMember(group: Group<Deferred>): WriteTransaction {
    const isFirst = group.members++ === 0
    if (!isFirst) this.#connection.savepoint()
    let isOver = false
    const isGone = (): boolean => this.#isClosed || this.#group() !== group
    const end = (undoOrKeep: () => void): Promise<void> => {
      isOver = true
      return this.#endMember(group, undoOrKeep)
    }
    return {
      run: <R>(query: SqlQuery) => {
        if (this.#isClosed) throw closedError()
        if (isOver || isGone()) throw new Error('The transaction is over.')
        return this.#connection.run<R>(query)
      },
      commit: async () => {
        if (isGone()) throw closedError()
        await end(() => isFirst || this.#connection.releaseSavepoint())
      },
      rollback: async () => {
        // A failed commit of the group has already undone the changes of this member.
        if (isOver || isGone()) return
        await end(() => (isFirst ? this.#abandon(group) : this.#connection.rollbackToSavepoint()))
      },
    }
  }

  #endMember(group: Group<Deferred>, undoOrKeep: () => void): Promise<void> {
    try {
      undoOrKeep()
    } catch {
      // The group can no longer be committed, so its end rejects every member.
    }
    this.#release()
    return group.done
  }

  #writeAsMember<R>(group: Group<Deferred>, query: SqlQuery): Promise<QueryResult<R>> {
    const isFirst = group.members++ === 0
    try {
      const result = this.#connection.run<R>(query)
      return group.done.then(() => result)
    } catch (error) {
      // SQLite has undone the statement. Changes of other members may have caused the error, so it
      // is thrown only after these changes are committed.
      if (isFirst && !this.#connection.isClosedToMembers()) this.#abandon(group)
      return group.done.then(() => Promise.reject(error))
    } finally {
      this.#release()
    }
  }

  #release(): void {
    this.#giveUpConnection()
    this.#dispatch()
  }

  #giveUpConnection(): void {
    if (this.#state.name === 'member') this.#moveTo({ name: 'open', group: this.#state.group })
    else if (this.#state.name === 'exclusive') this.#moveTo({ name: 'idle' })
  }

  /**
   * Schedules the commit for the end of this turn of the event loop. Postpones it turn by turn
   * while more writes will arrive soon.
   */
  #scheduleCommit(): void {
    if (this.#isCommitScheduled) return
    this.#isCommitScheduled = true
    setImmediate(() => {
      this.#isCommitScheduled = false
      const group = this.#group()
      if (group !== null && this.#options.isWriteComing() && this.#takesMembers(group)) this.#scheduleCommit()
      else void this.#commitGroup()
    })
  }

  async #commitGroup(): Promise<void> {
    const state = this.#state
    if (state.name !== 'open' && state.name !== 'finishing') return
    if (state.name === 'open') {
      this.#endGroup(state.group)
      this.#dispatch()
    }
    await state.group.done.catch(nothing)
  }

  #endGroup(group: Group<Deferred>): void {
    if (group.deferred.length === 0) {
      this.#commit(group)
      return
    }
    this.#moveTo({ name: 'finishing', group })
    void this.#options.beforeCommit(group.deferred).then(
      () => {
        this.#commit(group)
        this.#dispatch()
      },
      (error: unknown) => {
        this.#fail(group, error)
        this.#dispatch()
      },
    )
  }

  #commit(group: Group<Deferred>): void {
    this.#moveTo({ name: 'committing' })
    let failure: { error: unknown } | null = null
    try {
      this.#connection.commit()
    } catch (error) {
      failure = { error }
    }
    this.#moveTo({ name: 'idle' })
    if (failure === null) this.#answer(group)
    else group.reject(failure.error)
  }

  /**
   * Resolves the group after all commits so far are on the disk. Earlier commits must be on the
   * disk, too, because members of the group may have read them.
   */
  #answer(group: Group<Deferred>): void {
    const durable = this.#options.whenDurable()
    if (durable === null) group.resolve()
    else durable.then(group.resolve, group.reject)
  }

  #fail(group: Group<Deferred>, error: unknown): void {
    this.#moveTo({ name: 'idle' })
    try {
      this.#connection.rollback()
    } catch {
      // Ignored, because `begin` rolls back again before the next transaction.
    }
    group.reject(error)
  }

  /** Rolls back a group whose only member has failed or rolled back. */
  #abandon(group: Group<Deferred>): void {
    this.#moveTo({ name: 'idle' })
    try {
      this.#connection.rollback()
    } finally {
      this.#answer(group)
    }
  }

  /** Rolls back the running member when the queue closes. The changes of earlier members stay. */
  #abortMember(group: Group<Deferred>): void {
    try {
      if (group.members === 1) this.#abandon(group)
      else {
        this.#moveTo({ name: 'open', group })
        this.#connection.rollbackToSavepoint()
      }
    } catch {
      // The group can no longer be committed, so its end rejects every member.
    }
  }
}

const nothing = (): void => undefined

const closedError = (): Error => new Error('The database was closed.')
