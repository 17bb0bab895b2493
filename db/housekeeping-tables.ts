// Names the tables without CRM records: the tables that coordinate processes, and the search index.

/**
 * Processes store locks and positions in these tables every few seconds. No cache depends on them,
 * so a change in them does not change `Store.commitGeneration`.
 */
export const housekeepingTables = ['event_readers', 'locks', 'schedules'] as const

/**
 * The table of the documents of full-text search. Each change adds an index segment that
 * maintenance merges later.
 */
export const searchIndexTable = 'search_index'
