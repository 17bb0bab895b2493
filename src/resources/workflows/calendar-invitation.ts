// The calendar invitation attached to e-mails about an activity. The file is stored before the
// transaction that creates the e-mail. After the deletion of the activity, it cancels the meeting
// (RFC 5546). It never holds the comment of the activity, which is for colleagues.
import { Readable } from 'node:stream'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Uploads } from '../../kernel/files/multipart.ts'
import { calendarDate } from '../../kernel/values/format.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { inviteOf } from '../../mail/invite.ts'
import { persons } from '../persons/resource.ts'
import type { ActionSubject } from './action-subject.ts'

/** The file key by which the body of the e-mail refers to the invitation. */
export const inviteKey = 'invite.ics'

interface Participant {
  name: string
  addresses: string[]
  personId: number | null
}

/**
 * Returns the participants who have an e-mail address. Leaves out inactive users. Lists every
 * address of a person.
 */
export async function mailableParticipants(ctx: Context, { participants }: Snapshot): Promise<Participant[]> {
  const all = (participants ?? []) as Schema<'Participant'>[]
  const emails = await activeEmails(
    ctx,
    all.flatMap(({ user }) => user?.id ?? []),
  )
  const known = canCall(ctx, persons.getOperation)
    ? await persons.getMany(ctx, personIdsOf(all))
    : new Map<number, never>()
  return all
    .map(({ user, person }): Participant => {
      if (user) return { name: user.name, addresses: [emails.get(user.id) ?? []].flat(), personId: null }
      const points = known.get(person?.id ?? 0)?.emails ?? []
      return { name: person?.name ?? '', addresses: points.map(({ value }) => value), personId: person?.id ?? null }
    })
    .filter(({ addresses }) => addresses.length > 0)
}

const personIdsOf = (all: readonly Schema<'Participant'>[]): number[] => all.flatMap(({ person }) => person?.id ?? [])

/** Returns whether a participant is an existing person whom the caller may not see. */
export async function hasUnseenParticipants(ctx: Context, { participants }: Snapshot): Promise<boolean> {
  const ids = personIdsOf((participants ?? []) as Schema<'Participant'>[])
  const seen = canCall(ctx, persons.getOperation) ? await persons.visibleIds(ctx, ids) : new Set<number>()
  for (const id of ids) if (!seen.has(id) && (await persons.exists(ctx, id))) return true
  return false
}

async function activeEmails({ db }: Context, userIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
  if (userIds.length === 0) return new Map()
  const active = db.selectFrom('users').select(['id', 'email']).where('is_active', '=', 1)
  const rows = await active.where('id', 'in', userIds).execute()
  return new Map(rows.map(({ id, email }) => [id, email]))
}

/**
 * Calendar programs send their answer to the organizer. The organizer of an installation with a
 * polled mailbox has the address of the mailbox, so that the answer arrives. The organizer of any
 * other installation has the address of the user.
 */
const organiserAddress = ({ services: { config } }: Context, own: string): string =>
  config.mailReceiver === 'webklex-imap' ? config.mailFrom : own

export async function uploadInvitation(
  ctx: Context,
  { entity, record, isGone, isDeletion }: ActionSubject,
): Promise<Uploads | null> {
  const { schedule_from: from, schedule_to: to } = record as Partial<Schema<'Activity'>>
  // Between the event and this run the record may have been deleted or restored.
  if (entity !== 'activities' || isGone !== isDeletion || !from || !to) return null
  const { timezone } = ctx.services.config
  const {
    id,
    version,
    title,
    location,
    user,
    updated_at,
    is_all_day: isAllDay,
  } = record as unknown as Schema<'Activity'>
  const text = inviteOf({
    uid: `activity-${id}@${ctx.services.config.mailDomain}`,
    // A cancellation needs a higher number than the invitation that it cancels.
    sequence: isDeletion ? version + 1 : version,
    start: calendarDate(from, { isAllDay, zone: timezone }),
    end: calendarDate(to, { isAllDay, zone: timezone }),
    isAllDay,
    summary: title ?? '',
    location,
    organiser: user && { name: user.name, email: organiserAddress(ctx, user.email) },
    attendees: (await mailableParticipants(ctx, record)).map(({ name, addresses: [email = ''] }) => ({ name, email })),
    created: new Date(updated_at),
    method: isDeletion ? 'CANCEL' : 'REQUEST',
  })
  const upload = await ctx.services.files.receive(Readable.from([Buffer.from(text)]), inviteKey)
  return { files: new Map([[inviteKey, upload]]), kept: new Set() }
}
