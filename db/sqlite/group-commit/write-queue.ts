// Who may write next, first come, first served. Transactions that come together share one commit: each has a savepoint of its own and
// is answered once all of them are on the disk. If they cannot get there, none of them has happened. What is put off is done before.
// While another process holds the write lock, transactions wait in line and the event loop goes on.

import type { QueryResult } from 'kysely'
import { isBusy, retryDelayMs, retryWhileBusy } from '../busy-retry.ts'
import type { SqlQuery } from '../prepared-statements.ts'
import { type Group, type Groups, type Membership, newGroup, type Waiting } from './group.ts'
import type { ExclusiveConnection, WriteQueue, WriteTransaction } from './types.ts'
import type { Guarded } from './write-connection.ts'

/** Another process that holds the lock for longer than this is no short one … */
const briefMs = 250
/** … and then so many wait at most. More would keep requests from being read that only read (kernel/turns.ts). */
const maxWaiting = 100

export function createWriteQueue<Late>(
  connection: Guarded,
  { maxMsLength, waitMs, awaits, finish, settled, prepare }: Groups<Late>,
): WriteQueue<Late> {
  let waiting: Waiting[] = []
  let group: Group<Late> | null = null
  let isTaken = false
  let isEnding = false
  let isServing = false
  let isEndDue = false
  let isClosed = false
  /** Another process holds the write lock. */
  let held: { since: number; tries: number; error: unknown } | null = null
  let nextTry: NodeJS.Timeout | null = null
  /** Whether the next transaction can begin. */
  let prepared: 'no' | 'soon' | 'yes' = 'no'

  function enter(one: Waiting): void {
    if (isClosed) one.refuse(closed())
    else if (held !== null && waiting.length >= maxWaiting && performance.now() - held.since > briefMs)
      one.refuse(held.error)
    else waiting.push(one)
    dispatch()
  }

  function dispatch(): void {
    // Whoever is done at once gives back while it is being served.
    if (isServing || isHeldUp()) return
    isServing = true
    while (!isTaken) {
      const next = waiting[0]
      if (group !== null && (isFinal(group) || (next !== undefined && !canJoin(group, next)))) {
        end(group)
        continue
      }
      if (next === undefined) break
      if (next.as !== 'alone' && group === null && !open(next.as)) {
        if (isHeldUp()) break
        continue
      }
      waiting.shift()
      isTaken = true
      next.start()
    }
    isServing = false
    if (group !== null && !isTaken) endSoon()
  }

  const isHeldUp = (): boolean => nextTry !== null || prepared === 'soon'

  const isFinal = ({ isOwn }: Group<Late>): boolean => isOwn || connection.isFinal()

  const takesMore = ({ since }: Group<Late>): boolean => performance.now() - since < maxMsLength

  const canJoin = (one: Group<Late>, { as }: Waiting): boolean => as === 'member' && takesMore(one)

  function open(as: Membership): boolean {
    if (!isPrepared()) return false
    try {
      connection.begin(as === 'own group' ? 'file' : 'memory')
    } catch (error) {
      if (isBusy(error)) hold(error)
      else refuse(error, () => true)
      return false
    }
    held = null
    group = newGroup(as !== 'member')
    return true
  }

  function isPrepared(): boolean {
    const preparing = prepared === 'yes' ? null : prepare()
    prepared = preparing === null ? 'no' : 'soon'
    void preparing?.then(() => {
      prepared = 'yes'
      dispatch()
    })
    return preparing === null
  }

  function refuse(error: unknown, isMeant: (one: Waiting) => boolean): void {
    const refused = waiting.filter((one) => one.as !== 'alone' && isMeant(one))
    waiting = waiting.filter((one) => !refused.includes(one))
    for (const each of refused) each.refuse(error)
  }

  /** Refuses transactions that have waited too long. The others wait for the next try. */
  function hold(error: unknown): void {
    const now = performance.now()
    held = { since: held?.since ?? now, tries: (held?.tries ?? -1) + 1, error }
    refuse(error, ({ since }) => now - since >= waitMs)
    if (!waiting.some(({ as }) => as !== 'alone')) {
      held = null
      return
    }
    nextTry = setTimeout(() => {
      nextTry = null
      dispatch()
    }, retryDelayMs(held.tries))
  }

  function end(one: Group<Late>): void {
    if (one.late.length === 0) {
      commit(one)
      return
    }
    isTaken = true
    isEnding = true
    const over = (conclude: () => void): void => {
      isEnding = false
      conclude()
      giveBack()
    }
    finish(one.late).then(
      () => over(() => commit(one)),
      (error) => over(() => fail(one, error)),
    )
  }

  function commit(one: Group<Late>): void {
    group = null
    try {
      connection.commit()
    } catch (error) {
      one.reject(error)
      return
    }
    answer(one)
  }

  /** Once what it has done, and what it has seen of those before it, is on the disk. */
  function answer(one: Group<Late>): void {
    const waited = settled()
    if (waited === null) one.resolve()
    else waited.then(one.resolve, one.reject)
  }

  function fail(one: Group<Late>, error: unknown): void {
    group = null
    try {
      connection.undo()
    } catch {
      // Tried again before the next one begins.
    }
    one.reject(error)
  }

  /** Nobody else is in it. */
  function abandon(one: Group<Late>): void {
    group = null
    try {
      connection.undo()
    } finally {
      answer(one)
    }
  }

  /** Once those have come who come in this turn of the event loop, or in the next few when there are more. */
  function endSoon(): void {
    if (isEndDue) return
    isEndDue = true
    setImmediate(() => {
      isEndDue = false
      if (group !== null && awaits() && takesMore(group)) endSoon()
      else void settle()
    })
  }

  async function settle(): Promise<void> {
    if (group === null || (isTaken && !isEnding)) return
    const { done } = group
    if (!isEnding) end(group)
    await done.catch(nothing)
  }

  function giveBack(): void {
    isTaken = false
    dispatch()
  }

  function turnIn(one: Group<Late>): WriteTransaction {
    const isFirst = one.members++ === 0
    if (!isFirst) connection.mark()
    let isOver = false

    function leave(undoOrKeep: () => void): Promise<void> {
      isOver = true
      try {
        undoOrKeep()
      } catch {
        // Then nothing of the group can be kept, which its end says.
      }
      giveBack()
      return one.done
    }

    return {
      run(query) {
        if (isOver || isClosed || group !== one) throw isClosed ? closed() : new Error('The transaction is over.')
        return connection.run(query)
      },
      async commit() {
        if (isClosed || group !== one) throw closed()
        await leave(isFirst ? nothing : connection.forgetMark)
      },
      async rollback() {
        // A commit that failed has undone all of it.
        if (isOver || isClosed || group !== one) return
        await leave(isFirst ? () => abandon(one) : connection.backToMark)
      },
    }
  }

  function changeIn<R>(one: Group<Late>, query: SqlQuery): Promise<QueryResult<R>> {
    const isFirst = one.members++ === 0
    try {
      const result = connection.run<R>(query)
      return one.done.then(() => result)
    } catch (error) {
      // SQLite has undone the statement. What was wrong with it may be due to others, who are not certain yet.
      if (isFirst && !connection.isFinal()) abandon(one)
      return one.done.then(() => Promise.reject(error))
    } finally {
      giveBack()
    }
  }

  const exclusive = (): ExclusiveConnection => ({
    run: connection.runAlone,
    giveBack() {
      try {
        connection.undo()
      } finally {
        giveBack()
      }
    },
  })

  /** Waits in line; what `start` throws is for whoever waited, and so is what it answers. */
  const inLine = <T>(as: Waiting['as'], start: () => T | PromiseLike<T>): Promise<T> =>
    new Promise((resolve, refuse) => {
      enter({
        as,
        since: performance.now(),
        refuse,
        start: () => {
          try {
            resolve(start())
          } catch (error) {
            isTaken = false
            refuse(error)
          }
        },
      })
    })

  return {
    begin: (as) => inLine(as, () => turnIn(group as Group<Late>)),
    change: <R>(query: SqlQuery) => inLine('member', () => changeIn<R>(group as Group<Late>, query)),
    outside: <R>(query: SqlQuery) =>
      inLine('alone', async () => {
        try {
          return await retryWhileBusy(() => connection.run<R>(query), waitMs)
        } finally {
          giveBack()
          await settled()
        }
      }),
    alone: () => inLine('alone', exclusive),
    isIdle: () => group === null && !isTaken && waiting.length === 0,
    putOff(late) {
      if (isClosed) throw closed()
      if (group === null || !isTaken || isEnding) throw new Error('Nothing can be put off outside of a transaction.')
      for (const each of late) group.late.push(each)
    },
    async close() {
      isClosed = true
      if (nextTry !== null) clearTimeout(nextTry)
      nextTry = null
      const refused = waiting
      waiting = []
      if (group !== null && isTaken && !isEnding) {
        isTaken = false
        try {
          if (group.members === 1) abandon(group)
          else connection.backToMark()
        } catch {
          // The end of the group says so to all of it.
        }
      }
      for (const each of refused) each.refuse(closed())
      await settle()
    },
  }
}

const nothing = (): void => undefined

const closed = (): Error => new Error('The database was closed.')
