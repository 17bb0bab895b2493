// A store that stands for another one, which may be replaced while a server runs.
import type { Store } from '../../db/open.ts'

export const storeOf = (current: () => Store): Store => ({
  get db() {
    return current().db
  },
  dialect: current().dialect,
  url: current().url,
  health: () => current().health(),
  retry: () => current().retry(),
  faults: () => current().faults(),
  generation: () => current().generation(),
  vocabulary: () => current().vocabulary(),
  confirmed: () => current().confirmed(),
  verifyPlace: () => current().verifyPlace(),
  lost: () => current().lost(),
  assertPlace: () => current().assertPlace(),
  refresh: (agoMs) => current().refresh(agoMs),
  expect: (writes) => current().expect(writes),
  putOff: (stale) => current().putOff(stale),
  logBytes: () => current().logBytes(),
  onCommit: (listener) => current().onCommit(listener),
  tend: () => current().tend(),
  image: () => current().image(),
  snapshot: () => current().snapshot(),
  close: () => current().close(),
})
