// The tables that hold no records of the CRM: the notes of running processes, and the search index.
/**
 * Tables in which processes note who does what, and how far they are. They change every few seconds, and nothing that is kept in memory
 * may follow from them: what this process changes in them makes no other generation (`Store.generation`).
 */
export const housekeepingTables = ['event_readers', 'locks', 'schedules'] as const

/** The documents of full-text search. Each change leaves a segment behind that maintenance merges later. */
export const searchIndex = 'search_index'
