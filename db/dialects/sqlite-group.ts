// Those who share one commit, and what they wait for.

export interface Group {
  /** It has one member and takes no other. */
  readonly isOwn: boolean
  readonly since: number
  members: number
  /** Settles for all of them at once. */
  readonly done: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export function newGroup(isOwn: boolean): Group {
  let resolve = nothing
  let reject: (error: unknown) => void = nothing
  const done = new Promise<void>((...both) => {
    ;[resolve, reject] = both
  })
  // Nobody may be left in it who would hear.
  done.catch(nothing)
  return { isOwn, since: performance.now(), members: 0, done, resolve, reject }
}

const nothing = (): void => undefined
