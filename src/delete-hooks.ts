// Collects the delete hooks of all slices, in the order in which they run.
import { collectDeleteHooks } from './kernel/history/delete-hooks.ts'
import { deleteHooks as activities } from './resources/activities/delete-hooks.ts'
import { deleteHooks as attributes } from './resources/attributes/delete-hooks.ts'
import { deleteHooks as marketing } from './resources/marketing/delete-hooks.ts'
import { deleteHooks as search } from './resources/search/delete-hooks.ts'

export const deleteHooks = collectDeleteHooks([attributes, activities, marketing, search])
