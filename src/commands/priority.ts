// Commands that read much beside a server: the server comes first where there are few processors. Commands that write keep their
// priority, because the server would wait for a write lock whose holder gets no processor.
import { getPriority, setPriority } from 'node:os'

/** As `nice` counts; the same as for drawings (kernel/runtime/offload.ts). */
const niceness = 10

export function lowerPriority(): void {
  try {
    setPriority(Math.max(niceness, getPriority()))
  } catch {
    // The system does not allow it; then all have the same.
  }
}
