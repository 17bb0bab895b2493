// A store that delegates to another store, which a test can replace while a server runs.
import type { DeferredWork, Pause, Store } from '../../db/store.ts'

export function storeOf(current: () => Store): Store {
  let deferredWork: DeferredWork | undefined
  let newPause: (() => Pause) | undefined
  return {
    get db() {
      return current().db
    },
    dialect: current().dialect,
    url: current().url,
    health: () => current().health(),
    tryWrite: () => current().tryWrite(),
    retryWrite: () => current().retryWrite(),
    faults: () => current().faults(),
    commitGeneration: () => current().commitGeneration(),
    whenDurable: () => current().whenDurable(),
    verifyFiles: () => current().verifyFiles(),
    lostFiles: () => current().lostFiles(),
    assertFiles: () => current().assertFiles(),
    renewReadTransaction: (agoMs) => current().renewReadTransaction(agoMs),
    onGroupCommit: (writes) => current().onGroupCommit(writes),
    beforeGroupCommit: (work) => {
      deferredWork = work
    },
    paceTransactions: (pace) => {
      newPause = pace
    },
    transaction: (work, options) => {
      // The store may have been replaced.
      if (newPause) current().paceTransactions(newPause)
      return current().transaction(work, options)
    },
    clockOffsetMs: () => current().clockOffsetMs(),
    synchronizeClock: () => current().synchronizeClock(),
    retries: () => current().retries(),
    deferToCommit: (db, records) => {
      // The store may have been replaced, so the work is set again.
      if (deferredWork) current().beforeGroupCommit(deferredWork)
      return current().deferToCommit(db, records)
    },
    connections: () => current().connections(),
    walBytes: () => current().walBytes(),
    onCommit: (listener) => current().onCommit(listener),
    maintain: () => current().maintain(),
    purge: (tables) => current().purge(tables),
    image: () => current().image(),
    snapshot: (options) => current().snapshot(options),
    assertPrimary: () => current().assertPrimary(),
    replicaState: () => current().replicaState(),
    replicaSendsFeedback: () => current().replicaSendsFeedback(),
    onReplica: (work) => current().onReplica(work),
    close: () => current().close(),
  }
}
