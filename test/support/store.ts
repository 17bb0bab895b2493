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
  generation: () => current().generation(),
  vocabulary: () => current().vocabulary(),
  refresh: (agoMs) => current().refresh(agoMs),
  expect: (writes) => current().expect(writes),
  putOff: (stale) => current().putOff(stale),
  tend: () => current().tend(),
  image: () => current().image(),
  snapshot: () => current().snapshot(),
  close: () => current().close(),
})
