// Helpers for consumers of the event log: their position, and a dispatcher that runs until it has
// delivered every event.
import type { EventDispatcher } from '../../src/jobs/event-consumers.ts'
import type { TestServer } from './app.ts'

/** Returns the id of the last event that the consumer has processed. */
export async function placeOf({ store }: TestServer, name: string): Promise<number> {
  const place = store.db.selectFrom('event_readers').select('last_event_id').where('name', '=', name)
  return (await place.executeTakeFirstOrThrow()).last_event_id
}

export async function drain({ dispatch: feed }: EventDispatcher): Promise<void> {
  while (await feed());
}
