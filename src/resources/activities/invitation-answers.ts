// Stores the answer of a participant that a calendar program sent by e-mail. An answer counts for
// the times that the activity has when the answer arrives.
import { defineJob } from '../../jobs/queue.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { addressKey, fold } from '../../kernel/values/format.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { emitOnly, transaction } from '../../kernel/write/write.ts'
import type { InvitationAnswer } from '../../mail/parse/parse.ts'
import { type AnswersPayload, answerKind } from '../emails/invitation-answers.ts'
import { activities } from './resource.ts'

export const invitationAnswersJob = defineJob<AnswersPayload>({
  ...answerKind,
  run: ({ services }, { answers }) =>
    transaction(systemContext(services, 'inbound_mail'), async (ctx) => {
      for (const answer of answers) await storeAnswer(ctx, answer)
    }),
})

/** Returns the id of the activity that an invitation of this installation is about. */
function activityOf({ services }: Context, uid: string): number | null {
  const [, id = '', domain = ''] = /^activity-(\d{1,15})@(.{1,255})$/i.exec(uid) ?? []
  return id !== '' && fold(domain) === fold(services.config.mailDomain) ? Number(id) : null
}

async function storeAnswer(ctx: Context, { uid, address, response, at }: InvitationAnswer): Promise<void> {
  const id = activityOf(ctx, uid)
  const activity = id === null ? undefined : await activityTimes(ctx, id)
  if (id === null || activity === undefined) return
  const time = stamp(at === null || new Date(at) > ctx.time ? ctx.time : new Date(at))
  const fits = (await participantsOf(ctx, id)).filter(
    (each) => each.addresses.has(addressKey(address)) && (each.responded_at === null || each.responded_at < time),
  )
  if (fits.length === 0) return
  const before = (await activities.get(ctx, id)) as Snapshot
  const { schedule_from, schedule_to } = activity
  for (const { id: participant } of fits)
    await ctx.db
      .updateTable('activity_participants')
      .set({ response, responded_at: time, answered_from: schedule_from, answered_to: schedule_to })
      .where('id', '=', participant)
      .execute()
  await activities.touch(ctx, id)
  const shown = (await activities.get(ctx, id)) as Snapshot
  // Not `activity.update`, whose workflows would send the activity to all participants again.
  await emitOnly(ctx, 'activity.answered', { entity: 'activities', id, before, shown, changed: ['participants'] })
}

const activityTimes = ({ db }: Context, id: number) =>
  db.selectFrom('activities').select(['schedule_from', 'schedule_to']).where('id', '=', id).executeTakeFirst()

interface Answering {
  id: number
  responded_at: string | null
  addresses: Set<string>
}

async function participantsOf({ db }: Context, activityId: number): Promise<Answering[]> {
  const rows = await db
    .selectFrom('activity_participants as part')
    .leftJoin('users', 'users.id', 'part.user_id')
    .leftJoin('persons', 'persons.id', 'part.person_id')
    .select(['part.id', 'part.responded_at', 'users.email', 'persons.emails'])
    .where('part.activity_id', '=', activityId)
    .execute()
  return rows.map(({ id, responded_at, email, emails }) => {
    const points = JSON.parse(emails ?? '[]') as { value: string }[]
    const own = [...(email === null ? [] : [email]), ...points.map(({ value }) => value)]
    return { id, responded_at, addresses: new Set(own.map(addressKey)) }
  })
}
