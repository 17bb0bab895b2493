// Workflow actions that add a tag, a note or another activity to the record.
import { DateTime } from 'luxon'
import type { Context } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { fold, oneLine } from '../../kernel/values/format.ts'
import { activities } from '../activities/resource.ts'
import { placeholdersFrom } from '../email-templates/placeholder-values.ts'
import { fillIn } from '../email-templates/placeholders.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { type ActionEffect, type ActionSubject, actionRefused, requireRecord } from './action-subject.ts'
import { type Action, maxLength } from './actions.ts'

const tagged = {
  leads: createTagHandlers('leads', leads),
  persons: createTagHandlers('persons', persons),
  quotes: createTagHandlers('quotes', quotes),
}
const linkOf = { leads: 'lead_id', persons: 'person_id', quotes: 'quote_id' } as const

/**
 * Returns the entity of the record. Throws for activities, which have neither tags nor notes;
 * saving a workflow already refuses these actions for activities.
 */
function kindOf({ entity }: ActionSubject): keyof typeof linkOf {
  if (entity === 'activities') throw actionRefused('Nothing can be added to an activity.')
  return entity
}

const addTag: ActionEffect = {
  async act(ctx, about, { value }) {
    requireRecord(about)
    const name = String(value).trim()
    const { data } = await tagged[kindOf(about)].attach(ctx, { params: { id: about.id }, body: { name } })
    return { tag_id: data.find((tag) => fold(tag.name) === fold(name))?.id ?? null }
  },
  async describe(_ctx, about, { value }) {
    requireRecord(about)
    return `Attach the tag ${String(value).trim()}.`
  },
}

const addNote: ActionEffect = {
  async act(ctx, about, action) {
    requireRecord(about)
    const owner = await activeOwner(ctx, about)
    const { id } = await activities.create(ctx, {
      type: 'note',
      comment: await noteOf(ctx, about, action),
      is_done: true,
      user_id: owner,
      [linkOf[kindOf(about)]]: about.id,
    })
    return { activity_id: id }
  },
  async describe(ctx, about, action) {
    requireRecord(about)
    const note = await noteOf(ctx, about, action)
    return `Add the note: ${shortened(note)}`
  },
}

const createActivity: ActionEffect = {
  async act(ctx, about, action) {
    requireRecord(about)
    const activity = await activityOf(ctx, about, action)
    const { id } = await activities.create(ctx, {
      ...activity,
      user_id: action.activity?.user_id ?? (await activeOwner(ctx, about)),
      [linkOf[kindOf(about)]]: about.id,
      allow_overlap: true,
    })
    return { activity_id: id }
  },
  async describe(ctx, about, action) {
    requireRecord(about)
    const { type, title, comment } = await activityOf(ctx, about, action)
    return `Create the ${type}: ${shortened(title ?? comment ?? '')}`
  },
}

async function activityOf(ctx: Context, { entity, record }: ActionSubject, { activity }: Action) {
  if (!activity) throw actionRefused('The action has no activity.')
  const { type, due_in_days } = activity
  const facts = await placeholdersFrom(ctx, entity, record)
  const filled = (text: string | null, most: number): string | null => {
    if (text === null) return null
    const found = fillIn(text, facts, 'text', most)
    if (!found) throw actionRefused(`The ${type} is too long once it is filled in.`)
    return found.filled
  }
  const title = filled(activity.title, 255)
  const texts = { type, title: title && oneLine(title), comment: filled(activity.comment, maxLength.note) }
  if (type === 'note') return texts
  const day = DateTime.fromJSDate(ctx.time, { zone: ctx.services.config.timezone }).plus({ days: due_in_days })
  const [first, last] = [day.startOf('day'), day.endOf('day')].map((time) => stamp(time.toJSDate()))
  return type === 'task'
    ? { ...texts, due_at: last ?? null }
    : { ...texts, is_all_day: true, schedule_from: first ?? null, schedule_to: first ?? null }
}

const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 199)}…` : text)

async function noteOf(ctx: Context, { entity, record }: ActionSubject, { value }: Action): Promise<string> {
  const note = fillIn(String(value), await placeholdersFrom(ctx, entity, record), 'text', maxLength.note)
  if (!note) throw actionRefused(`The note has more than ${maxLength.note} characters once it is filled in.`)
  return note.filled
}

/**
 * Returns the owner of the new note: the owner of the record if that user is active, otherwise
 * null. A workflow's user without a global view cannot leave a note without an owner, so that user
 * owns the note instead of null.
 */
async function activeOwner({ db, user }: Context, { record }: ActionSubject): Promise<number | null> {
  const none = user?.visibleOwners ? user.id : null
  if (typeof record.user_id !== 'number') return none
  const row = await db.selectFrom('users').select('is_active').where('id', '=', record.user_id).executeTakeFirst()
  return row?.is_active === 1 ? record.user_id : none
}

export const tagAndNoteActions = {
  add_tag: addTag,
  add_note_as_activity: addNote,
  create_activity: createActivity,
} satisfies Record<string, ActionEffect>
