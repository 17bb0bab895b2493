// Lowers the priority of a command that only reads, so that a server on the same machine comes
// first. A command that writes must keep its priority: at low priority, it would hold its write
// lock longer, and servers wait for that lock.
import { getPriority, setPriority } from 'node:os'

/** The niceness of the process. Subprocesses have the same value (kernel/runtime/offload.ts). */
const niceness = 10

export function lowerPriority(): void {
  try {
    setPriority(Math.max(niceness, getPriority()))
  } catch {
    // Some systems forbid the change. The priority then stays as it is.
  }
}
