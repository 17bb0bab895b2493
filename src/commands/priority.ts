// Lowers the priority of commands that only read, so that a server on the same machine comes first.
// Commands that write keep theirs: a server would wait for a write lock whose holder gets no
// processor time.
import { getPriority, setPriority } from 'node:os'

/** The same niceness as subprocesses have (kernel/runtime/offload.ts). */
const niceness = 10

export function lowerPriority(): void {
  try {
    setPriority(Math.max(niceness, getPriority()))
  } catch {
    // Some systems forbid it; the priority then stays as it is.
  }
}
