// Participants of an activity: users and persons. A body sends participants either as
// two lists of ids or in the form that replies use.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { Include, Writing } from '../../kernel/resource/define-resource.ts'
import { whyMissing } from '../../kernel/resource/references.ts'
import { personRef } from '../persons/contacts.ts'
import { persons } from '../persons/resource.ts'
import { activeUsers, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'

type Sent = Schema<'ParticipantsInput'>
type Column = 'user_id' | 'person_id'

/** A participant: a user or a person. `field` is the body field of the id, for error messages. */
export interface Attendee {
  column: Column
  id: number
  field: string
}

interface Stored {
  id: number
  user_id: number | null
  person_id: number | null
}

const maxParticipants = 100
const keyOf = ({ column, id }: Pick<Attendee, 'column' | 'id'>): string => `${column} ${id}`

const attendeeOf = (row: Stored, field: string): Attendee =>
  row.user_id !== null
    ? { column: 'user_id', id: row.user_id, field }
    : { column: 'person_id', id: row.person_id ?? 0, field }

const storedParticipants = (ctx: Context, activityId: number): Promise<Stored[]> =>
  ctx.db
    .selectFrom('activity_participants')
    .select(['id', 'user_id', 'person_id'])
    .where('activity_id', '=', activityId)
    .orderBy('id')
    .execute()

/** Converts either form of a body's participants to one list without duplicates. */
function parseParticipants(sent: Sent, present: readonly Stored[], errors: ValidationErrors | null): Attendee[] {
  const attendees = Array.isArray(sent)
    ? sent.flatMap((each, index) => parseOne(each, `participants.${index}`, present, errors))
    : parseLists(sent)
  return [...new Map(attendees.map((each) => [keyOf(each), each])).values()]
}

const parseLists = (sent: Exclude<Sent, unknown[]>): Attendee[] => [
  ...(sent.users ?? []).map((id, index): Attendee => ({ column: 'user_id', id, field: `participants.users.${index}` })),
  ...(sent.persons ?? []).map(
    (id, index): Attendee => ({ column: 'person_id', id, field: `participants.persons.${index}` }),
  ),
]

function parseOne(
  sent: Extract<Sent, unknown[]>[number],
  field: string,
  present: readonly Stored[],
  errors: ValidationErrors | null,
): Attendee[] {
  const user = sent.user_id ?? sent.user?.id ?? null
  const person = sent.person_id ?? sent.person?.id ?? null
  const [id, other] = user === null ? [person, user] : [user, person]
  if (id === null) {
    const row = present.find((each) => each.id === sent.id)
    if (row) return [attendeeOf(row, field)]
    errors?.invalid(
      field,
      sent.id === undefined ? 'Name a user or a person.' : `No participant of this activity has id ${sent.id}.`,
    )
    return []
  }
  if (other !== null) errors?.invalid(field, 'Name either a user or a person, not both.')
  if (typeof id === 'number' && Number.isSafeInteger(id) && id > 0)
    return [{ column: user === null ? 'person_id' : 'user_id', id, field }]
  errors?.invalid(field, 'The id must be a whole number of at least 1.')
  return []
}

/**
 * Returns the participants after the change, and whether the change adds or removes any. Reports
 * new users who do not exist or are inactive, and new persons who are not visible. Participants who
 * are already stored are not checked again.
 */
export async function checkParticipants(
  { ctx, current, errors }: Writing<{ id: number }>,
  sent: Sent | undefined,
): Promise<{ attendees: Attendee[]; isChanged: boolean }> {
  const present = current ? await storedParticipants(ctx, current.id) : []
  const before = new Set(present.map((row) => keyOf(attendeeOf(row, ''))))
  if (sent === undefined) return { attendees: present.map((row) => attendeeOf(row, '')), isChanged: false }
  const attendees = parseParticipants(sent, present, errors)
  if (attendees.length > maxParticipants)
    errors.invalid('participants', `Must not have more than ${maxParticipants} entries.`)
  const added = attendees.filter((each) => !before.has(keyOf(each)))
  for (const [column, resource, find] of [
    ['user_id', users, activeUsers],
    ['person_id', persons, persons.visibleIds],
  ] as const) {
    const asked = added.filter((each) => each.column === column)
    const found = await find(
      ctx,
      asked.map(({ id }) => id),
    )
    for (const { field, id } of asked) if (!found.has(id)) errors.invalid(field, await whyMissing(ctx, resource, id))
  }
  return { attendees, isChanged: added.length > 0 || attendees.length !== present.length }
}

/** Adds and removes stored participants so that they match the body. */
export async function saveParticipants(ctx: Context, activityId: number, sent: Sent | undefined): Promise<void> {
  if (sent === undefined) return
  const present = await storedParticipants(ctx, activityId)
  const attendees = parseParticipants(sent, present, null)
  const wanted = new Set(attendees.map(keyOf))
  const before = new Set(present.map((row) => keyOf(attendeeOf(row, ''))))
  const gone = present.filter((row) => !wanted.has(keyOf(attendeeOf(row, ''))))
  if (gone.length > 0)
    await ctx.db
      .deleteFrom('activity_participants')
      .where(
        'id',
        'in',
        gone.map(({ id }) => id),
      )
      .execute()
  const added = attendees.filter((each) => !before.has(keyOf(each)))
  if (added.length === 0) return
  await ctx.db
    .insertInto('activity_participants')
    .values(
      added.map(({ column, id }) => ({
        activity_id: activityId,
        user_id: column === 'user_id' ? id : null,
        person_id: column === 'person_id' ? id : null,
      })),
    )
    .execute()
}

interface StoredAnswer {
  response: string | null
  responded_at: string | null
  answered_from: string | null
  answered_to: string | null
}

/** Returns the answer of a participant, which counts only for the times that it was given for. */
export function participantAnswer(
  { response, responded_at, answered_from, answered_to }: StoredAnswer,
  { schedule_from, schedule_to }: Pick<Schema<'Activity'>, 'schedule_from' | 'schedule_to'>,
): Pick<Schema<'Participant'>, 'response' | 'responded_at'> {
  return answered_from === schedule_from && answered_to === schedule_to
    ? { response: response as Schema<'InvitationResponse'> | null, responded_at }
    : { response: null, responded_at: null }
}

/**
 * Adds the participants to each activity of a page, with one query. For `include=participants`,
 * more queries load the full users and persons.
 */
export async function loadParticipants(
  ctx: Context,
  replies: readonly Schema<'Activity'>[],
  include: Include,
): Promise<void> {
  const byId = new Map(replies.map((reply) => [reply.id, reply]))
  const rows = await ctx.db
    .selectFrom('activity_participants as part')
    .leftJoin('users', 'users.id', 'part.user_id')
    .leftJoin('persons', 'persons.id', 'part.person_id')
    .select([
      'part.id',
      'part.activity_id',
      'part.user_id',
      'part.person_id',
      'users.name as user_name',
      'users.email as user_email',
      'users.image_file_id as user_image',
      'part.response',
      'part.responded_at',
      'part.answered_from',
      'part.answered_to',
    ])
    .select(['persons.name as person_name', 'persons.emails as person_emails'])
    .where('part.activity_id', 'in', [...byId.keys()])
    .orderBy('part.id')
    .execute()
  const isFull = include.includes('participants')
  const idsOf = (column: Column, { getOperation }: Pick<typeof users, 'getOperation'>): number[] =>
    isFull && canCall(ctx, getOperation) ? rows.flatMap((row) => row[column] ?? []) : []
  const fullUsers = await users.getMany(ctx, idsOf('user_id', users))
  const fullPersons = await persons.getMany(ctx, idsOf('person_id', persons))
  for (const row of rows) {
    const person =
      row.person_id === null ? null : personRef(row.person_id, row.person_name ?? '', row.person_emails ?? '[]')
    const activity = byId.get(row.activity_id)
    if (activity === undefined) continue
    activity.participants.push({
      id: row.id,
      user:
        fullUsers.get(row.user_id ?? 0) ??
        userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
      person: fullPersons.get(row.person_id ?? 0) ?? person,
      ...participantAnswer(row, activity),
    })
  }
}
