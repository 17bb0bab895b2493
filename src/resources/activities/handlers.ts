// What activities can do beyond the everyday: several at once, export, their files and the calendar. Timelines, which show more
// than activities, are in timeline.ts.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massDestroy, massUpdate } from '../../kernel/resource/mass.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { referFile } from '../files/attach.ts'
import { bytesOf } from '../files/handlers.ts'
import { getActivityCalendar } from './calendar.ts'
import { activityColumns } from './columns.ts'
import { attach, copyOf, detach, fileOf, filesOf, rename } from './files.ts'
import { activities } from './resource.ts'

const listActivityFiles: Handler<'listActivityFiles'> = async (ctx, { params }) => {
  await activities.assertVisible(ctx, params.id)
  return { data: await filesOf(ctx, params.id) }
}

const attachActivityFile: Handler<'attachActivityFile'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    await activities.assertVisible(ctx, params.id)
    if ((body.file_id === undefined) === (body.file === undefined))
      throw invalid({ file_id: ['Send either the id of an upload or, in a form, a file.'] })
    const present = (await filesOf(ctx, params.id)).find(({ id }) => id === body.file_id)
    if (present) return { data: await renamed(ctx, params.id, present, body.name), message: 'File attached.' }
    const found = new ValidationErrors()
    await referFile({ ctx, found }, 'file_id', body.file_id)
    found.throwIfAny()
    const copy = await copyOf(ctx, params.id, body)
    if (copy) return { data: copy, message: 'File attached.' }
    const data = await attach(ctx, params.id, body)
    await activities.touch(ctx, params.id)
    return { data, message: 'File attached.' }
  })

/** Attached already: what may change is the name, which is a change of the activity. */
async function renamed(
  ctx: Context,
  activityId: number,
  present: Schema<'ActivityFile'>,
  name: string | null | undefined,
): Promise<Schema<'ActivityFile'>> {
  if (typeof name !== 'string' || name === present.name) return present
  const show = async (ctx: Context): Promise<Snapshot> => ({ ...(await activities.get(ctx, activityId)) })
  const about = { entity: 'activities', input: { file_id: present.id, name }, id: activityId, before: await show(ctx) }
  await write(ctx, 'activity.update', about, async (ctx) => {
    await rename(ctx, activityId, present.id, name)
    await activities.touch(ctx, activityId)
    return { id: activityId, entity: await show(ctx) }
  })
  return (await filesOf(ctx, activityId)).find(({ id }) => id === present.id) ?? present
}

const detachActivityFile: Handler<'detachActivityFile'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    await activities.assertVisible(ctx, params.id)
    await detach(ctx, params.id, params.file_id)
    await activities.touch(ctx, params.id)
    return { message: 'File removed from the activity.' }
  })

const downloadActivityFile: Handler<'downloadActivityFile'> = async (ctx, { params }) => {
  await activities.assertVisible(ctx, params.id)
  const row = await fileOf(ctx, params.id, params.file_id)
  return bytesOf(ctx, { ...row, id: row.file_id })
}

export const handlers = {
  massUpdateActivities: massUpdate(activities, (ctx, id, isDone: boolean) =>
    activities.update(ctx, id, { is_done: isDone }),
  ),
  massDestroyActivities: massDestroy(activities),
  exportActivities: exportOf(activities, activityColumns),
  listActivityFiles,
  attachActivityFile,
  detachActivityFile,
  downloadActivityFile,
  getActivityCalendar,
} satisfies Partial<Handlers>
