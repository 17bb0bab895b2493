// When participants need a new calendar invitation.
import type { Schema } from '../../contract/types.ts'
import type { Snapshot } from '../../kernel/write/events.ts'

/**
 * Returns whether a change gives an activity another time, place or other participants, or switches
 * its invitations on. `before` is null for a new activity.
 */
export const isRescheduled = (before: Snapshot | null, after: Snapshot): boolean =>
  before === null || invitationFacts(before) !== invitationFacts(after)

function invitationFacts(activity: Snapshot): string {
  const { schedule_from, schedule_to, is_all_day, location, notify } = activity as Partial<Schema<'Activity'>>
  const participants = ((activity.participants ?? []) as Schema<'Participant'>[])
    .map(({ user, person }) => (user ? `user ${user.id}` : `person ${person?.id}`))
    .sort()
  return JSON.stringify([schedule_from, schedule_to, is_all_day, location, notify, participants])
}
