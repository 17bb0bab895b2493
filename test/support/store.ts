// A store that stands for another one, which may be replaced while a server runs.
import type { Store } from '../../db/store.ts'

export const storeOf = (current: () => Store): Store => ({
  get db() {
    return current().db
  },
  dialect: current().dialect,
  url: current().url,
  health: () => current().health(),
  retry: () => current().retry(),
  faults: () => current().faults(),
  commitGeneration: () => current().commitGeneration(),
  referenceDataGeneration: () => current().referenceDataGeneration(),
  confirmed: () => current().confirmed(),
  verifyPlace: () => current().verifyPlace(),
  lost: () => current().lost(),
  assertPlace: () => current().assertPlace(),
  renewReadTransaction: (agoMs) => current().renewReadTransaction(agoMs),
  onGroupCommit: (writes) => current().onGroupCommit(writes),
  deferToCommit: (stale) => current().deferToCommit(stale),
  logBytes: () => current().logBytes(),
  onCommit: (listener) => current().onCommit(listener),
  maintain: () => current().maintain(),
  image: () => current().image(),
  snapshot: () => current().snapshot(),
  close: () => current().close(),
})
