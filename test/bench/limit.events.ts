// Writes the event log of the limit server.
import type { Database } from 'better-sqlite3'

export class Refused extends Error {}

export const foldText = (text: string): string => text.normalize('NFC').toLowerCase()

interface EventRow {
  name: string
  entity_type: string
  entity_id: number
  related_type?: string
  related_id?: number
  token_id: number | null
  before?: string
  after: string | null
  changed: string[]
  owner_id: number | null
  first_event_id?: number
}

export type Log = (event: EventRow, requestId: string, ip: string, at: string) => number

/** Returns a function that inserts an event and returns its id. */
export function eventLog(database: Database): Log {
  const insertEvent = database.prepare<
    unknown[]
  >(`insert into events (name, entity_type, entity_id, related_type, related_id, actor_type, actor_id, actor_name,
    token_id, request_id, origin, ip, before, after, changed, owner_id, first_event_id, created_at)
    values (?, ?, ?, ?, ?, 'user', 1, 'Example Admin', ?, ?, 'api', ?, ?, ?, ?, ?, ?, ?)`)
  return (event, requestId, ip, at) => {
    const { name, entity_type, entity_id, related_type = null, related_id = null, token_id, before = null } = event
    const about = [name, entity_type, entity_id, related_type, related_id, token_id, requestId, ip, before, event.after]
    const { lastInsertRowid } = insertEvent.run(
      ...about,
      JSON.stringify(event.changed),
      event.owner_id,
      event.first_event_id ?? null,
      at,
    )
    return Number(lastInsertRowid)
  }
}
