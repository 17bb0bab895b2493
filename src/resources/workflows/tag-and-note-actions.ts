// Workflow actions that add a tag or a note to the record.
import type { Context } from '../../kernel/context.ts'
import { fold } from '../../kernel/values/format.ts'
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
    return `Add the note: ${note.length > 200 ? `${note.slice(0, 199)}…` : note}`
  },
}

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

export const tagAndNoteActions = { add_tag: addTag, add_note_as_activity: addNote } satisfies Record<
  string,
  ActionEffect
>
