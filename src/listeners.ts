// Registers all listeners, in the order in which they run, and collects all delete hooks. There are
// no listeners so far: an effect of a write happens in its transaction, or in a job that reads the
// event log.

import { collectDeleteHooks } from './kernel/history/delete-hooks.ts'
import type { Emitter } from './kernel/write/events.ts'
import { deleteHooks as activities } from './resources/activities/delete-hooks.ts'
import { deleteHooks as attributes } from './resources/attributes/delete-hooks.ts'
import { deleteHooks as marketing } from './resources/marketing/delete-hooks.ts'
import { deleteHooks as search } from './resources/search/delete-hooks.ts'

export type RegisterListeners = (events: Emitter) => void

const slices: readonly RegisterListeners[] = []

export const deleteHooks = collectDeleteHooks([attributes, activities, marketing, search])

export function registerListeners(events: Emitter): void {
  for (const register of slices) register(events)
}
