// All listeners of all slices, in the order they run: the answer to "what happens when a lead is created?". None so far:
// what follows a write is either in its own transaction or, from the event log, in a job.
import type { Emitter } from './kernel/events.ts'

export type RegisterListeners = (events: Emitter) => void

const slices: readonly RegisterListeners[] = []

export function registerListeners(events: Emitter): void {
  for (const register of slices) register(events)
}
