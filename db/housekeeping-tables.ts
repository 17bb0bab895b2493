// Names the tables without CRM records: the tables with which processes coordinate, and the search
// index.

/**
 * The tables in which processes store locks and positions every few seconds. No cache depends on
 * these tables, so a change in one does not change `Store.commitGeneration`.
 */
export const housekeepingTables = ['event_readers', 'locks', 'schedules'] as const

/**
 * The table of the documents of full-text search. Each change adds an index segment that
 * maintenance merges later.
 */
export const searchIndexTable = 'search_index'
