// All listeners of all slices, in the order they run: the answer to "what happens when a lead is created?". None so far:
// what follows a write is either in its own transaction or, from the event log, in a job. And what goes with a record that
// is deleted, where the slice that knows is not the slice that deletes.

import { collectDeleteHooks } from './kernel/history/delete-hooks.ts'
import type { Emitter } from './kernel/write/events.ts'
import { releases as activities } from './resources/activities/releases.ts'
import { releases as attributes } from './resources/attributes/releases.ts'
import { deleteHooks as marketing } from './resources/marketing/delete-hooks.ts'
import { deleteHooks as search } from './resources/search/delete-hooks.ts'

export type RegisterListeners = (events: Emitter) => void

const slices: readonly RegisterListeners[] = []

export const releases = collectDeleteHooks([attributes, activities, marketing, search])

export function registerListeners(events: Emitter): void {
  for (const register of slices) register(events)
}
