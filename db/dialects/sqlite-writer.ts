// Who may write next, first come, first served. Transactions that come together share one commit: each has a savepoint of its own and
// is answered once all of them are on the disk. If they cannot get there, none of them has happened.

import type { QueryResult } from 'kysely'
import { type Group, newGroup } from './sqlite-group.ts'
import type { Guarded } from './sqlite-guarded.ts'
import type { Query } from './sqlite-statements.ts'

export interface Writer {
  /** `isOwn`: with a commit of its own, for what lasts long: nobody waits for it who was before it, and it sees nobody else's. */
  begin(isOwn: boolean): Promise<Turn>
  /** One statement that changes rows: a transaction of its own, in a group like any other. */
  change<R>(query: Query): Promise<QueryResult<R>>
  /** One statement that stands in no transaction. */
  outside<R>(query: Query): Promise<QueryResult<R>>
  /** The same for more than one: nobody else has the connection until it is given back. */
  alone(): Promise<Exclusive>
  /** Whether nobody is waiting, under way or waiting for the commit. */
  isIdle(): boolean
  /** Commits what waits for that, unless somebody is half-way. */
  settle(): void
  /** Commits what waits for that; what is half-way is lost. Nothing more is done. */
  close(): void
}

/** A transaction, which has the connection for itself until it ends one way or the other. */
export interface Turn {
  run<R>(query: Query): QueryResult<R>
  /** Settles with the commit of the group. */
  commit(): Promise<void>
  /** What it did is gone at once. What it has seen of the others of its group holds once this settles. */
  rollback(): Promise<void>
}

export interface Exclusive {
  run<R>(query: Query): QueryResult<R>
  giveBack(): void
}

interface Waiting {
  readonly as: 'member' | 'own group' | 'alone'
  readonly start: () => void
  readonly refuse: (error: unknown) => void
}

/**
 * A group that has lasted `longestMs` takes nobody more, and waits for nobody: its first waits for its last. With 0 there are none.
 * `awaits`: whether others are about to write. A commit costs the processor as much as a small change does.
 */
export function writerOf(connection: Guarded, longestMs: number, awaits: () => boolean): Writer {
  let waiting: Waiting[] = []
  let group: Group | null = null
  let isTaken = false
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
      if (group !== null && (isFinal(group) || (next !== undefined && !canJoin(group, next)))) end(group)
      if (next === undefined) break
      if (next.as !== 'alone' && group === null && !open(next.as === 'own group')) continue
      waiting.shift()
      isTaken = true
      next.start()
    }
    isServing = false
    if (group !== null && !isTaken) endSoon()
  }

  const isFinal = ({ isOwn }: Group): boolean => isOwn || connection.isFinal()

  const takesMore = ({ since }: Group): boolean => performance.now() - since < longestMs

  const canJoin = (one: Group, { as }: Waiting): boolean => as === 'member' && takesMore(one)

  function open(isOwn: boolean): boolean {
    try {
      connection.begin()
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

  function end(one: Group): void {
    group = null
    try {
      connection.commit()
      one.resolve()
    } catch (error) {
      one.reject(error)
    }
  }

  /** Nobody else is in it. */
  function abandon(one: Group): void {
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
      else settle()
    })
  }

  function settle(): void {
    if (group !== null && !isTaken) end(group)
  }

  function giveBack(): void {
    isTaken = false
    serve()
  }

  function turnIn(one: Group): Turn {
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
        if (isOver || group !== one) throw isClosed ? closed() : new Error('The transaction is over.')
        return connection.run(query)
      },
      async commit() {
        if (group !== one) throw closed()
        await leave(isFirst ? nothing : connection.forgetMark)
      },
      async rollback() {
        // A commit that failed has undone all of it.
        if (isOver || group !== one) return
        await leave(isFirst ? () => abandon(one) : connection.backToMark)
      },
    }
  }

  function changeIn<R>(one: Group, query: Query): Promise<QueryResult<R>> {
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
    begin: (isOwn) => inLine(isOwn ? 'own group' : 'member', () => turnIn(group as Group)),
    change: <R>(query: Query) => inLine('member', () => changeIn<R>(group as Group, query)),
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
    settle,
    close() {
      isClosed = true
      const refused = waiting
      waiting = []
      if (group !== null && isTaken) {
        try {
          if (group.members === 1) abandon(group)
          else connection.backToMark()
        } catch {
          // The end of the group says so to all of it.
        }
      }
      if (group !== null) end(group)
      for (const each of refused) each.refuse(closed())
    },
  }
}

const nothing = (): void => undefined

const closed = (): Error => new Error('The database was closed.')
