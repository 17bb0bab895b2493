// Which tables nothing but running processes are interested in.
/**
 * Tables in which processes note who does what, and how far they are. They change every few seconds, and nothing that is kept in memory
 * may follow from them: what this process changes in them makes no other generation (`Store.generation`).
 */
export const housekeepingTables = ['event_readers', 'locks', 'schedules'] as const
