// The tables that hold no records of the CRM: those in which processes coordinate, and the search
// index.

/**
 * Processes write their locks and positions here every few seconds. No cache depends on these
 * tables, so a change in them leaves `Store.commitGeneration` as it is.
 */
export const housekeepingTables = ['event_readers', 'locks', 'schedules'] as const

/**
 * The documents of full-text search. Each change adds an index segment that maintenance merges
 * later.
 */
export const searchIndex = 'search_index'
