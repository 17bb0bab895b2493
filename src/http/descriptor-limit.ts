// How many files and sockets the system lets this process have open, and how many of them may be connections. Without a descriptor the
// process can neither read its database nor measure its memory, so connections never take the last ones.
import { readFileSync } from 'node:fs'

export const maxConnections = 10_000
/** Open once the server has started: the database, the event loop, the log, the program. */
const ownDescriptors = 32
/** For exports, uploads, outgoing mail and calls, subprocesses: a share of the limit within these bounds. */
const reserve = { min: 8, max: 256, share: 1 / 8 }

/** Null where the system does not tell. Node has raised the soft limit to the hard one by then. */
export function maxDescriptors(): number | null {
  const said = fromProc() ?? fromReport()
  return said === null || said === 'unlimited' ? null : Number(said) || null
}

/** At least one, or nobody could ask for anything. */
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
