// The implementation of each workflow action, by action id.

import type { ActionEffect } from './action-subject.ts'
import type { Action } from './actions.ts'
import { emailActions } from './email-actions.ts'
import { noticeAction } from './notice-action.ts'
import { tagAndNoteActions } from './tag-and-note-actions.ts'
import { updateActions } from './update-actions.ts'
import { webhookActions } from './webhook-actions.ts'

export const effects: Record<Action['id'], ActionEffect> = {
  ...updateActions,
  ...emailActions,
  ...tagAndNoteActions,
  ...webhookActions,
  ...noticeAction,
}
