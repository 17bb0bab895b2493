// Computes how many file descriptors this process may open, and how many of them may be
// connections. Some descriptors stay reserved, because without a free descriptor the process could
// not read its database.
import { readFileSync } from 'node:fs'

export const maxConnections = 10_000
/** The number of descriptors for the database, the event loop, the log and the program files. */
const ownDescriptors = 32
/**
 * The descriptors for exports, uploads, mail, outgoing calls and subprocesses. `share` is the
 * fraction of the limit; `min` and `max` bound the number.
 */
const reserve = { min: 8, max: 256, share: 1 / 8 }

/**
 * Returns the maximum number of descriptors, or null when the system does not tell. Node raises the
 * soft limit to the hard limit when it starts.
 */
export function maxDescriptors(): number | null {
  const said = fromProc() ?? fromReport()
  return said === null || said === 'unlimited' ? null : Number(said) || null
}

/**
 * Returns the maximum number of connections. It is at least one, so that the server can be reached.
 */
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

/** Reads the limit from Node's diagnostic report. Needed on systems other than Linux. */
function fromReport(): string | null {
  const { userLimits } = (process.report?.getReport() ?? {}) as Report
  return userLimits?.open_files?.soft?.toString() ?? null
}
