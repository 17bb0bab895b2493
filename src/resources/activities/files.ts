// Checks, presents, attaches and detaches the files of activities. Attaching and
// detaching a file each emit a pair of events.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import { uploaded } from '../../kernel/files/multipart.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { write } from '../../kernel/write/write.ts'
import { addFile, attachFile, releaseFiles } from '../files/attach.ts'
import { fileRows, visibleFiles } from '../files/rows.ts'

/**
 * The files in the body of a new activity: `file_ids` names uploaded files, and `file` is one file
 * from a multipart form.
 */
export type FileInput = Pick<Schema<'ActivityForm'>, 'file_ids' | 'file' | 'name'>
type ActivityFile = Schema<'ActivityFile'>

interface Row {
  file_id: number
  activity_id: number
  name: string
  size: number
  content_type: string
  sha256: string
  created_at: string
  updated_at: string
}

const ownerOf = (activityId: number) => ({ type: 'activities', id: activityId })

/** Returns the files of the activities in the order in which they were attached. */
const rowsBy = (ctx: Context, activityIds: readonly number[]): Promise<Row[]> =>
  ctx.db
    .selectFrom('activity_files')
    .innerJoin('files', 'files.id', 'activity_files.file_id')
    .select(['files.size', 'files.content_type', 'files.sha256'])
    .select(['activity_files.file_id', 'activity_files.activity_id', 'activity_files.name'])
    .select(['activity_files.created_at', 'activity_files.updated_at'])
    .where('activity_files.activity_id', 'in', activityIds)
    .orderBy('activity_files.id')
    .execute()

function presentFile(ctx: Context, row: Row): ActivityFile {
  const path = pathTo(operations.downloadActivityFile, row.activity_id, row.file_id)
  return {
    id: row.file_id,
    name: row.name,
    path,
    url: ctx.baseUrl + path,
    size: row.size,
    content_type: row.content_type,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/** Adds the files to each activity of a page, with one query. */
export async function loadFiles(ctx: Context, replies: readonly Schema<'Activity'>[]): Promise<void> {
  const byId = new Map(replies.map((reply) => [reply.id, reply]))
  for (const row of await rowsBy(ctx, [...byId.keys()])) byId.get(row.activity_id)?.files.push(presentFile(ctx, row))
}

export const listFiles = async (ctx: Context, activityId: number): Promise<ActivityFile[]> =>
  (await rowsBy(ctx, [activityId])).map((row) => presentFile(ctx, row))

/** Returns one file of the activity. Throws 404 when the file is not attached to this activity. */
export async function getFile(ctx: Context, activityId: number, fileId: number): Promise<Row> {
  const row = (await rowsBy(ctx, [activityId])).find(({ file_id }) => file_id === fileId)
  if (!row) throw notFound('attached file', fileId)
  return row
}

/**
 * Checks the files of a new activity. Reports files that do not exist or are not visible, and a
 * missing file when the type is `file`.
 */
export async function checkFiles(
  { ctx, current, errors }: Writing<unknown>,
  type: string,
  { file_ids: ids = [], file, name }: FileInput,
): Promise<void> {
  if (current) return
  const seen = new Set((await visibleFiles(ctx, await fileRows(ctx, ids))).map(({ id }) => id))
  for (const [index, id] of ids.entries())
    if (!seen.has(id)) errors.invalid(`file_ids.${index}`, `No file has id ${id}.`)
  if (type === 'file' && ids.length === 0 && file === undefined)
    errors.invalid('file_ids', 'A file is required: name an upload, or send a form with `file`.')
  if (typeof name === 'string' && file === undefined)
    errors.invalid('name', 'There is no `file` it could be the name of.')
}

/** Attaches the files of a new activity. Returns whether the body named any files. */
export async function attachNewFiles(
  ctx: Context,
  activityId: number,
  { file_ids: ids = [], file, name }: FileInput,
): Promise<void> {
  for (const id of new Set(ids)) await attachToActivity(ctx, activityId, { file_id: id })
  if (file !== undefined) await attachToActivity(ctx, activityId, { file, ...(name && { name }) })
}

/**
 * Returns the attached file with the same bytes and name as the file to attach, so that a retried
 * request adds no second copy. Returns undefined for a file that belongs to no record, because such
 * a file is attached without a copy.
 */
export async function findCopy(
  ctx: Context,
  activityId: number,
  { file_id: id, name }: Schema<'ActivityFileForm'>,
): Promise<ActivityFile | undefined> {
  const [file] = id === undefined ? [] : await fileRows(ctx, [id])
  if (!file || file.owner_type === null) return undefined
  const wanted = name ?? file.name
  const copy = (await rowsBy(ctx, [activityId])).find((row) => row.sha256 === file.sha256 && row.name === wanted)
  return copy && presentFile(ctx, copy)
}

/** Attaches one file. Must run in a transaction. The caller must check the file first. */
export async function attachToActivity(
  ctx: Context,
  activityId: number,
  { file_id, file, name }: Schema<'ActivityFileForm'>,
): Promise<ActivityFile> {
  // The events contain the file id, so the file is stored before the events are emitted. A veto
  // rolls the file back.
  const fileId =
    file === undefined
      ? await attachFile(ctx, file_id ?? 0, ownerOf(activityId))
      : await addFile(ctx, uploaded(ctx, file), ownerOf(activityId))
  const about = {
    entity: 'activities',
    input: { file_id: fileId, ...(typeof name === 'string' && { name }) },
    id: activityId,
    related: { type: 'files', id: fileId },
  }
  const { entity } = await write(ctx, 'activities.file.create', about, async (ctx) => {
    const [stored] = await fileRows(ctx, [fileId])
    const at = now(ctx)
    await ctx.db
      .insertInto('activity_files')
      .values({
        activity_id: activityId,
        file_id: fileId,
        name: name ?? stored?.name ?? '',
        created_at: at,
        updated_at: at,
      })
      .execute()
    const row = await getFile(ctx, activityId, fileId)
    return { id: activityId, entity: snapshotOf(ctx, row) }
  })
  const { activity_id: _, ...shown } = entity as Snapshot
  return shown as ActivityFile
}

export async function renameFile(ctx: Context, activityId: number, fileId: number, name: string): Promise<void> {
  await ctx.db
    .updateTable('activity_files')
    .set({ name, updated_at: now(ctx) })
    .where('activity_id', '=', activityId)
    .where('file_id', '=', fileId)
    .execute()
}

/** Detaches one file from the activity and deletes the file. */
export async function detachFile(ctx: Context, activityId: number, fileId: number): Promise<void> {
  const row = await getFile(ctx, activityId, fileId)
  const about = {
    entity: 'activities',
    input: {},
    id: activityId,
    before: snapshotOf(ctx, row),
    related: { type: 'files', id: fileId },
  }
  await write(ctx, 'activities.file.delete', about, async (ctx) => {
    await ctx.db
      .deleteFrom('activity_files')
      .where('activity_id', '=', activityId)
      .where('file_id', '=', fileId)
      .execute()
    await releaseFiles(ctx, ownerOf(activityId), [fileId])
    return { id: activityId, entity: null }
  })
}

const snapshotOf = (ctx: Context, row: Row): Snapshot => ({ activity_id: row.activity_id, ...presentFile(ctx, row) })
