// How many descriptors this process may have open, and how many of them may be connections. Without
// a free descriptor it could not read its database, so connections never take the last ones.
import { readFileSync } from 'node:fs'

export const maxConnections = 10_000
/** Descriptors of the database, the event loop, the log and the program. */
const ownDescriptors = 32
/** For exports, uploads, mail, calls and subprocesses: a share of the limit within these bounds. */
const reserve = { min: 8, max: 256, share: 1 / 8 }

/**
 * Null where the system does not tell. Node has raised the soft limit to the hard one at its start.
 */
export function maxDescriptors(): number | null {
  const said = fromProc() ?? fromReport()
  return said === null || said === 'unlimited' ? null : Number(said) || null
}

/** At least one, so that the server can be reached. */
export function connectionsWithin(descriptors: number | null): number {
  if (descriptors === null) return maxConnections
  const kept = Math.min(Math.max(Math.floor(descriptors * reserve.share), reserve.min), reserve.max)
  return Math.max(1, Math.min(maxConnections, descriptors - ownDescriptors - kept))
}

function fromProc(): string | null {
  try {
    return /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? null
  } catch {
    return null
  }
}

interface Report {
  userLimits?: { open_files?: { soft?: string | number } }
}

/** For systems other than Linux. */
function fromReport(): string | null {
  const { userLimits } = (process.report?.getReport() ?? {}) as Report
  return userLimits?.open_files?.soft?.toString() ?? null
}
