// Checks every second, in servers and workers, whether the data folder or the database was removed
// or replaced, and whether storage faults began or ended. Logs a line for each change.
import type { FaultKind, RecordedFault } from '../../db/store.ts'
import type { Log, Services } from '../kernel/context.ts'
import { restoreAdvice } from './installation.ts'

const intervalMs = 1_000

/** The parts of a server or worker that a watch needs. */
interface Watched {
  http: { log: Log }
  services: Pick<Services, 'config' | 'store'>
}

export function watchStorage(app: Watched): NodeJS.Timeout {
  const { store } = app.services
  const tellPlace = placeTeller(app)
  const tellFaults = faultTeller(app)
  let isLooking = false
  async function check(): Promise<void> {
    if (isLooking) return
    isLooking = true
    await store.verifyFiles()
    isLooking = false
    tellPlace(store.lostFiles())
    tellFaults(store.faults())
  }
  return setInterval(() => void check(), intervalMs).unref()
}

function placeTeller({ http: { log } }: Watched): (now: string | null) => void {
  let known: string | null = null
  return (now) => {
    if (now === known) return
    known = now
    if (now === null) log.warn({}, 'The data are back; writes resume.')
    else
      log.error(
        {},
        `${now}. Writes are refused until it is back. To use a different one, restart; if it is lost, run: accord restore <backup> --force`,
      )
  }
}

function faultTeller({ http: { log }, services: { config } }: Watched): (faults: readonly RecordedFault[]) => void {
  const known = new Set<FaultKind>()
  return (faults) => {
    for (const { kind, count, present } of faults) {
      if ((present !== null) === known.has(kind)) continue
      if (present === null) {
        known.delete(kind)
        log.warn({ kind, count }, 'The database fault is over.')
      } else {
        known.add(kind)
        const next = kind === 'damaged' ? ` ${restoreAdvice(config)}` : ''
        log.error({ kind, count, code: present.code, since: present.since }, `${sentences[kind]}${next}`)
      }
    }
  }
}

const sentences: Readonly<Record<FaultKind, string>> = {
  damaged: 'The database is damaged; /readyz answers 503 until a restart. Run: accord doctor.',
  io: 'The disk failed to read, write or sync the database; /readyz answers 503 until a minute after the last error.',
  maintenance: 'Database maintenance fails; the write-ahead log may grow. It is retried every 30 seconds.',
}
