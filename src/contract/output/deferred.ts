// Marks the reply of work that continues after the response. The response has the status 202 that
// the contract declares with `x-deferred`.
const isDeferred = Symbol('deferred')

/** Marks a reply as deferred and returns it. */
export const deferred = <Reply extends object>(reply: Reply): Reply => ({ ...reply, [isDeferred]: true })

/** Returns the status of a successful reply, given the operation's usual one. */
export const statusOfReply = (reply: unknown, { dryRun, usual }: { dryRun: boolean; usual: number }): number => {
  if (typeof reply === 'object' && reply !== null && isDeferred in reply) return 202
  return dryRun ? 200 : usual
}
