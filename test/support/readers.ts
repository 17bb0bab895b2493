// Readers of the event log as tests look at them: where one is, and a feeder that goes on until there is nothing more.
import type { EventDispatcher } from '../../src/jobs/event-consumers.ts'
import type { TestServer } from './app.ts'

/** The last event that the reader is through with. */
export async function placeOf({ store }: TestServer, name: string): Promise<number> {
  const place = store.db.selectFrom('event_readers').select('last_event_id').where('name', '=', name)
  return (await place.executeTakeFirstOrThrow()).last_event_id
}

export async function drain({ dispatch: feed }: EventDispatcher): Promise<void> {
  while (await feed());
}
