// What each action does (DOMAIN 18.3), by its id.

import type { Effect } from './action-subject.ts'
import type { Action } from './actions.ts'
import { additions } from './additions.ts'
import { calls } from './calls.ts'
import { mails } from './mails.ts'
import { updates } from './updates.ts'

export const effects: Record<Action['id'], Effect> = { ...updates, ...mails, ...additions, ...calls }
