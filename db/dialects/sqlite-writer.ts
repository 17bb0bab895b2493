// Who may write next, first come, first served. Transactions that come together share one commit: each has a savepoint of its own and
// is answered once all of them are on the disk. If they cannot get there, none of them has happened. What is put off is done before.

import type { QueryResult } from 'kysely'
import { type Group, type Groups, newGroup, type Waiting } from './sqlite-group.ts'
import type { Guarded } from './sqlite-guarded.ts'
import type { Query } from './sqlite-statements.ts'
import type { Exclusive, Turn, Writer } from './sqlite-turns.ts'

export function writerOf<Late>(connection: Guarded, { longestMs, awaits, finish }: Groups<Late>): Writer<Late> {
  let waiting: Waiting[] = []
  let group: Group<Late> | null = null
  let isTaken = false
  let isEnding = false
  let isServing = false
  let isEndDue = false
  let isClosed = false

  function enter(one: Waiting): void {
    if (isClosed) one.refuse(closed())
    else waiting.push(one)
    serve()
  }

  function serve(): void {
    // Whoever is done at once gives back while it is being served.
    if (isServing) return
    isServing = true
    while (!isTaken) {
      const next = waiting[0]
      if (group !== null && (isFinal(group) || (next !== undefined && !canJoin(group, next)))) {
        end(group)
        continue
      }
      if (next === undefined) break
      if (next.as !== 'alone' && group === null && !open(next.as === 'own group')) continue
      waiting.shift()
      isTaken = true
      next.start()
    }
    isServing = false
    if (group !== null && !isTaken) endSoon()
  }

  const isFinal = ({ isOwn }: Group<Late>): boolean => isOwn || connection.isFinal()

  const takesMore = ({ since }: Group<Late>): boolean => performance.now() - since < longestMs

  const canJoin = (one: Group<Late>, { as }: Waiting): boolean => as === 'member' && takesMore(one)

  function open(isOwn: boolean): boolean {
    try {
      connection.begin(isOwn)
    } catch (error) {
      // Whoever waited meanwhile has waited as long.
      const refused = waiting.filter(({ as }) => as !== 'alone')
      waiting = waiting.filter(({ as }) => as === 'alone')
      for (const each of refused) each.refuse(error)
      return false
    }
    group = newGroup(isOwn)
    return true
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
      one.resolve()
    } catch (error) {
      one.reject(error)
    }
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
      one.resolve()
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
    serve()
  }

  function turnIn(one: Group<Late>): Turn {
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

  function changeIn<R>(one: Group<Late>, query: Query): Promise<QueryResult<R>> {
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

  const exclusive = (): Exclusive => ({
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
    begin: (isOwn) => inLine(isOwn ? 'own group' : 'member', () => turnIn(group as Group<Late>)),
    change: <R>(query: Query) => inLine('member', () => changeIn<R>(group as Group<Late>, query)),
    outside: <R>(query: Query) =>
      inLine('alone', () => {
        try {
          return connection.run<R>(query)
        } finally {
          giveBack()
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
