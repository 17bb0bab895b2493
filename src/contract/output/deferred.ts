// Marks the reply of work that continues after the response. The response has the status 202 that
// the contract declares with `x-deferred`.
const marked = new WeakSet<object>()

/** Marks a reply as deferred and returns it. */
export function deferred<Reply extends object>(reply: Reply): Reply {
  marked.add(reply)
  return reply
}

/** Returns the status of a successful reply, given the operation's usual one. */
export const statusOfReply = (reply: unknown, { dryRun, usual }: { dryRun: boolean; usual: number }): number => {
  if (typeof reply === 'object' && reply !== null && marked.has(reply)) return 202
  return dryRun ? 200 : usual
}
