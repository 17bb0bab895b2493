// Handlers for the activity operations other than CRUD: mass actions, export, files and the
// calendar. Timelines are in timeline.ts, because they also show e-mails and changes.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massDelete, massUpdate } from '../../kernel/resource/mass.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { checkFileReference } from '../files/attach.ts'
import { downloadBytes } from '../files/handlers.ts'
import { getActivityCalendar } from './calendar.ts'
import { activityColumns } from './columns.ts'
import { attachToActivity, detachFile, findCopy, getFile, listFiles, renameFile } from './files.ts'
import { activities } from './resource.ts'

const listActivityFiles: Handler<'listActivityFiles'> = (ctx, { params }) =>
  activities.withVersionOf(ctx, params.id, async () => ({ data: await listFiles(ctx, params.id) }))

const attachActivityFile: Handler<'attachActivityFile'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    await activities.assertVisible(ctx, params.id)
    if ((body.file_id === undefined) === (body.file === undefined))
      throw invalid({ file_id: ['Send either the id of an upload or, in a form, a file.'] })
    const present = (await listFiles(ctx, params.id)).find(({ id }) => id === body.file_id)
    if (present) return { data: await renameAttached(ctx, params.id, present, body.name), message: 'File attached.' }
    const errors = new ValidationErrors()
    await checkFileReference({ ctx, errors }, 'file_id', body.file_id)
    errors.throwIfAny()
    const copy = await findCopy(ctx, params.id, body)
    if (copy) return { data: copy, message: 'File attached.' }
    const data = await attachToActivity(ctx, params.id, body)
    await activities.touch(ctx, params.id)
    return { data, message: 'File attached.' }
  })

/** Renames an attached file. The change counts as an update of the activity. */
async function renameAttached(
  ctx: Context,
  activityId: number,
  present: Schema<'ActivityFile'>,
  name: string | null | undefined,
): Promise<Schema<'ActivityFile'>> {
  if (typeof name !== 'string' || name === present.name) return present
  const show = async (ctx: Context): Promise<Snapshot> => ({ ...(await activities.get(ctx, activityId)) })
  const about = { entity: 'activities', input: { file_id: present.id, name }, id: activityId, before: await show(ctx) }
  await write(ctx, 'activity.update', about, async (ctx) => {
    await renameFile(ctx, activityId, present.id, name)
    await activities.touch(ctx, activityId)
    return { id: activityId, entity: await show(ctx) }
  })
  return (await listFiles(ctx, activityId)).find(({ id }) => id === present.id) ?? present
}

const detachActivityFile: Handler<'detachActivityFile'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    await activities.assertVisible(ctx, params.id)
    await detachFile(ctx, params.id, params.file_id)
    await activities.touch(ctx, params.id)
    return { message: 'File removed from the activity.' }
  })

const downloadActivityFile: Handler<'downloadActivityFile'> = async (ctx, { params }) => {
  await activities.assertVisible(ctx, params.id)
  const row = await getFile(ctx, params.id, params.file_id)
  return downloadBytes(ctx, { ...row, id: row.file_id })
}

export const handlers = {
  massUpdateActivities: massUpdate(activities, (ctx, id, isDone: boolean) =>
    activities.update(ctx, id, { is_done: isDone }),
  ),
  massDeleteActivities: massDelete(activities),
  exportActivities: exportOf(activities, activityColumns),
  listActivityFiles,
  attachActivityFile,
  detachActivityFile,
  downloadActivityFile,
  getActivityCalendar,
} satisfies Partial<Handlers>
