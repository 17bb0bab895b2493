// The status of a successful reply, where an operation has several.
const statusOf = Symbol('status')

/**
 * Marks a reply with the status of its response and returns it: 202 for work that continues after
 * the response, which the contract declares with `x-deferred`, and 200 for an upsert that updates.
 * A reply that was marked before keeps its status.
 */
export const withStatus = <Reply extends object>(reply: Reply, status: 200 | 202): Reply => ({
  [statusOf]: status,
  ...reply,
})

/** Returns the status of a successful reply, given the operation's usual one. */
export const statusOfReply = (reply: unknown, { dryRun, usual }: { dryRun: boolean; usual: number }): number => {
  const marked = typeof reply === 'object' && reply !== null ? (reply as { [statusOf]?: number })[statusOf] : undefined
  return marked ?? (dryRun ? 200 : usual)
}
