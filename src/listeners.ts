// All listeners in the order they run, and all delete hooks. There are no listeners so far: the
// effects of a write happen in its transaction or, from the event log, in a job.

import { collectDeleteHooks } from './kernel/history/delete-hooks.ts'
import type { Emitter } from './kernel/write/events.ts'
import { deleteHooks as activities } from './resources/activities/delete-hooks.ts'
import { deleteHooks as attributes } from './resources/attributes/delete-hooks.ts'
import { deleteHooks as marketing } from './resources/marketing/delete-hooks.ts'
import { deleteHooks as search } from './resources/search/delete-hooks.ts'

export type RegisterListeners = (events: Emitter) => void

const slices: readonly RegisterListeners[] = []

export const releases = collectDeleteHooks([attributes, activities, marketing, search])

export function registerListeners(events: Emitter): void {
  for (const register of slices) register(events)
}
