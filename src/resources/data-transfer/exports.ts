// The rule for events about exports. Exports are not stored, so the events are their only trace.
import { operations } from '../../contract/operations.gen.ts'
import type { Sight } from '../../kernel/query/event-visibility.ts'

/** Callers who may list the users see who took which list. */
export const exportSight: Sight = { lists: operations.listUsers, records: null }
