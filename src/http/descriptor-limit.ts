// Computes how many connections this process may accept, from its limit of file descriptors. Some
// descriptors stay reserved, so that the process can always open its database and other files.
import { readFileSync } from 'node:fs'

export const maxConnections = 10_000
/** The limit of descriptors with which a server starts: Node opens many modules at once. */
export const minDescriptors = 96
/** The descriptors for the database, the event loop, the log and the program files. */
const ownDescriptors = 32
/**
 * The descriptors for exports, uploads, mail, outgoing calls and subprocesses: `share` of the
 * limit, but at least `min` and at most `max`.
 */
const reserve = { min: 8, max: 256, share: 1 / 8 }

/**
 * Returns the soft limit of descriptors, or null when it is unknown or unlimited. Node raises it to
 * the hard limit at its start.
 */
export function maxDescriptors(): number | null {
  const said = fromProc() ?? fromReport()
  return said === null || said === 'unlimited' ? null : Number(said) || null
}

/** Returns the maximum number of connections, at least one. */
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

/** Reads the limit from Node's diagnostic report, for systems other than Linux. */
function fromReport(): string | null {
  const { userLimits } = (process.report?.getReport() ?? {}) as Report
  return userLimits?.open_files?.soft?.toString() ?? null
}
