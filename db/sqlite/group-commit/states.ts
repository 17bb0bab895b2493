// The states of the write queue and the transitions between them. README.md explains each
// transition.

import type { Group } from './group.ts'

/**
 * A state of the write queue. A state has a `group` while the group's transaction accepts
 * statements.
 */
export type State<Deferred> =
  | { readonly name: 'idle' }
  | { readonly name: 'preparing' }
  | { readonly name: 'locked'; readonly retry: NodeJS.Timeout }
  | { readonly name: 'member'; readonly group: Group<Deferred> }
  | { readonly name: 'open'; readonly group: Group<Deferred> }
  | { readonly name: 'finishing'; readonly group: Group<Deferred> }
  | { readonly name: 'committing' }
  | { readonly name: 'exclusive' }

export type StateName = State<never>['name']

export const transitions: Readonly<Record<StateName, readonly StateName[]>> = {
  idle: ['preparing', 'locked', 'member', 'exclusive'],
  preparing: ['idle'],
  locked: ['idle'],
  member: ['open', 'idle'],
  open: ['member', 'finishing', 'committing'],
  finishing: ['committing', 'idle'],
  committing: ['idle'],
  exclusive: ['idle'],
}
