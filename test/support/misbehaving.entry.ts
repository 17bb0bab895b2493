// An offloaded job that misbehaves as the test requests, for tests of kernel/runtime/offload.ts.

export type Order = { sleepMs: number } | { spin: true } | { allocate: true } | { fail: string } | { bytes: number }

/** Executes the order and returns the id of the process. */
export async function run(order: Order): Promise<{ pid: number; bytes?: Uint8Array }> {
  const { pid } = process
  if ('sleepMs' in order) await new Promise((resolve) => setTimeout(resolve, order.sleepMs))
  else if ('spin' in order) for (;;);
  else if ('fail' in order) throw new Error(order.fail)
  else if ('bytes' in order) return { pid, bytes: Buffer.alloc(order.bytes, 7) }
  else for (const kept: number[][] = []; ; ) kept.push(new Array<number>(100_000).fill(1.5))
  return { pid }
}
