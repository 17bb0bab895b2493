// Watches the storage in servers and workers: looks each second whether the data are where they were opened, and what failed since.
// Logs one line for each change.
import type { FaultKind, RecordedFault } from '../../db/store.ts'
import type { App } from '../app.ts'
import { restoreAdvice } from './installation.ts'

const intervalMs = 1_000

export function watchStorage(app: App): NodeJS.Timeout {
  const { store } = app.services
  const tellPlace = placeTeller(app)
  const tellFaults = faultTeller(app)
  let isLooking = false
  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    await store.verifyFiles()
    isLooking = false
    tellPlace(store.lostFiles())
    tellFaults(store.faults())
  }
  return setInterval(() => void look(), intervalMs).unref()
}

function placeTeller({ http: { log } }: App): (now: string | null) => void {
  let known: string | null = null
  return (now) => {
    if (now === known) return
    known = now
    if (now === null) log.warn({}, 'The data are back where they were opened; writing goes on.')
    else
      log.error(
        {},
        `${now}. Nothing is written until it is back. If another one is to be used, restart; if it is gone, run: accord restore <backup> --force`,
      )
  }
}

function faultTeller({ http: { log }, services: { config } }: App): (faults: readonly RecordedFault[]) => void {
  const known = new Set<FaultKind>()
  return (faults) => {
    for (const { kind, count, present } of faults) {
      if ((present !== null) === known.has(kind)) continue
      if (present === null) {
        known.delete(kind)
        log.warn({ kind, count }, 'The fault of the database is over.')
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
  maintenance:
    'The maintenance of the database fails; its log of changes may grow. It is tried again every 30 seconds.',
}
