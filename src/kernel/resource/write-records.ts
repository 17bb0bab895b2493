// Creates, updates and deletes a record: checks the rules, writes the row and its children, emits
// events, saves links. Also examines a body that the schema has refused, so that one reply lists
// the errors of the schema and of the rules.

import { operations } from '../../contract/operations.gen.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { EventBase } from '../../contract/types.ts'
import { assertCanCall, type Context, now, warn } from '../context.ts'
import { Problem, ValidationErrors } from '../errors.ts'
import { archiveThenDelete } from '../history/archive.ts'
import { bumpReferrers, detachReferrers } from '../history/backreferences.ts'
import { runDeleteHooks } from '../history/delete-hooks.ts'
import { saveStoredReferences } from '../history/stored-references.ts'
import { insert } from '../query/insert.ts'
import { leadOwnersOf } from '../query/visibility.ts'
import { changedKeys, derivedKeysOf } from '../write/event-log.ts'
import type { Snapshot } from '../write/events.ts'
import { emitOnly, type InTransaction, transaction, write } from '../write/write.ts'
import type { AnyBody, AnyResource, AnyRow, ResourceParts } from './any-definition.ts'
import type { Examine, RowPlan } from './definition.ts'
import { saveMatchKeys, warnOfDuplicates } from './duplicates.ts'
import { idOfUpsert } from './external-ids.ts'
import type { RecordReader } from './read-records.ts'
import { settleRules } from './replace-named.ts'

/**
 * Matches columns that no reply contains. A new value in such a column still counts as a change of
 * the record.
 */
const hiddenSuffix = /_(hash|sealed)$/

/** A change of a record under another event than that of an update. */
interface Change {
  event: EventBase
  input: AnyBody
  /** Keys that only the snapshots of the event have, with their values before and after. */
  shown: Record<string, [before: unknown, after: unknown]>
  /** The field of the request that has the body. */
  field?: string
  /** Runs before the body is read, and changes the row and its children. */
  first: (ctx: InTransaction, before: Snapshot) => Promise<void>
}

interface MergedRemoval {
  replacement?: number
  keptDays: number
  /** Runs after the archive was made, and before the deletion. */
  first: (ctx: Context) => Promise<void>
}

type Save = Pick<AnyResource, 'create' | 'add' | 'update'> & {
  change(ctx: Context, id: number, body: AnyBody, change?: Change): Promise<Snapshot>
}
type Removal = Pick<AnyResource, 'remove'> & {
  removeMerged(ctx: Context, id: number, removal: MergedRemoval): Promise<void>
}
export type Writer = Save & Removal & Pick<AnyResource, 'replaceNamed' | 'examiners'>

export function createWriter(parts: ResourceParts, reader: RecordReader): Writer {
  const save = saving(parts, reader)
  return { ...save, ...removing(parts, reader), ...replacing(parts, reader, save), ...examining(parts, reader) }
}

function saving(parts: ResourceParts, reader: RecordReader): Save {
  const { d, facts, stored } = parts
  const { table } = d
  const { entity, events } = facts
  const maskInput = (body: AnyBody): AnyBody => d.maskInput?.(body) ?? body

  /**
   * Saves the links of a record. Returns whether a link changed, which its event shows; the caller
   * then raises the version of the record.
   */
  async function saveLinks(ctx: InTransaction, id: number, body: AnyBody, isNew: boolean): Promise<boolean> {
    const { length } = ctx.unit.after
    await d.saveLinks?.(ctx, id, body, isNew)
    return ctx.unit.after.length > length
  }

  /**
   * Returns the reply after a write. `shown` was read during the write. The record is read again
   * only if links changed after that. The reply is a copy, because listeners get `shown`.
   */
  const replyOf = async (ctx: Context, id: number, shown: Snapshot, isLinked: boolean): Promise<Snapshot> =>
    isLinked ? reader.toReply(ctx, await reader.findWritten(ctx, id)) : structuredClone(shown)

  /** Inserts the record and emits its events. The caller must be in a transaction. */
  async function insertRecord(ctx: InTransaction, body: AnyBody): Promise<Inserted> {
    const { columns, save } = await checkedPlan(ctx, d, body, null)
    let shown: Snapshot = {}
    const { id } = await write(ctx, events.create, { entity, input: maskInput(body) }, async (ctx) => {
      const at = now(ctx)
      const id = await insert(ctx, table, { ...columns, created_at: at, updated_at: at })
      await save?.(ctx, id)
      const row = await reader.findWritten(ctx, id)
      await storeReferences(ctx, { d, facts }, row)
      shown = await reader.toReply(ctx, row)
      await warnOfDuplicates(ctx, parts, id, await saveMatchKeys(ctx, d, { id, after: shown }))
      return { id, entity: shown }
    })
    await emitFollowUps(ctx, { d, facts }, id, [undefined, shown])
    await d.onChange?.(ctx, id, { after: shown })
    return { id, shown, isLinked: await saveLinks(ctx, id, body, true) }
  }

  const change: Save['change'] = (ctx, id, body, as) =>
    transaction(ctx, async (ctx) => {
      const current = await reader.findCurrent(ctx, id)
      const before = await reader.toReply(ctx, current)
      const planned = as ? undefined : await checkedPlan(ctx, d, body, current)
      let shown = before
      let isTouched = false
      const about = { entity, input: as ? as.input : maskInput(body), id, before: withShown(before, as, 0) }
      await write(ctx, as?.event ?? events.update, about, async (ctx) => {
        await as?.first(ctx, before)
        const plan =
          planned ??
          (await inField(as?.field, async () => checkedPlan(ctx, d, body, await reader.findWritten(ctx, id))))
        const updated = await updateRow(ctx, parts, reader, { id, before, plan, isMerge: as !== undefined })
        shown = updated.after
        isTouched = updated.isTouched
        await warnOfDuplicates(ctx, parts, id, await saveMatchKeys(ctx, d, { id, before, after: shown }))
        return { id, entity: withShown(shown, as, 1), hidden: updated.hidden }
      })
      if (isTouched) {
        await emitFollowUps(ctx, { d, facts }, id, [before, shown])
        await d.onChange?.(ctx, id, { before, after: shown })
      }
      const isLinked = await saveLinks(ctx, id, body, false)
      // `isTouched` means that `updateRow` has already raised the version, which may rise only
      // once per request.
      if (isLinked && !isTouched) await stored.touch(ctx, id)
      if (isLinked || isTouched) warnOfNewer(ctx, current)
      return replyOf(ctx, id, shown, isLinked)
    })

  return {
    add: (ctx, body) => transaction(ctx, async (ctx) => (await insertRecord(ctx, body)).id),

    create: (ctx, body) =>
      transaction(ctx, async (ctx) => {
        const { id, shown, isLinked } = await insertRecord(ctx, body)
        return replyOf(ctx, id, shown, isLinked)
      }),

    update: (ctx, id, body) => change(ctx, id, body),
    change,
  }
}

/**
 * Updates the row and its children. Returns the reply after the update, the changed fields that
 * no reply contains, and whether anything changed.
 */
async function updateRow(
  ctx: Context,
  { d, facts, stored }: ResourceParts,
  reader: RecordReader,
  { id, before, plan: { columns, save }, isMerge }: Update,
) {
  const sent = Object.entries(columns).filter(([, value]) => value !== undefined)
  const own = sent.length > 0 ? await stored.read(ctx, id) : {}
  const changes = Object.fromEntries(sent.filter(([column, value]) => own[column] !== value))
  const isRowChanged = Object.keys(changes).length > 0
  if (isRowChanged) await stored.update(ctx, id, changes)
  await save?.(ctx, id)
  const row = await reader.findWritten(ctx, id)
  await storeReferences(ctx, { d, facts }, row)
  const after = await reader.toReply(ctx, row)
  const shown = changedKeys(before, after, derivedKeysOf(ctx, facts.entity))
  const hidden = hiddenFields(Object.keys(changes), shown.length === 0)
  if (isRowChanged) return { after, hidden, isTouched: true }
  if (shown.length === 0 && !isMerge) return { after, hidden, isTouched: false }
  // Only children changed, so the version of the row has not been raised yet.
  await stored.touch(ctx, id)
  return { after: await reader.toReply(ctx, await reader.findWritten(ctx, id)), hidden, isTouched: true }
}

/** A deletion runs the rules and delete hooks, and stores an archive for a restore. */
function removing({ d, facts, below, stored }: ResourceParts, reader: RecordReader): Removal {
  const { entity, events } = facts
  const { table } = d
  const removeAs = (ctx: Context, id: number, { replacement, keptDays, first }: Partial<MergedRemoval>) =>
    transaction(ctx, async (ctx) => {
      const row = await reader.findCurrent(ctx, id)
      const before = await reader.toReply(ctx, row)
      const leadOwners = await leadOwnersOf(ctx, table, id)
      const removal = async () => {
        await first?.(ctx)
        return write(ctx, events.delete, { entity, input: {}, id, before }, async (ctx) => {
          await settleRules(ctx, { entity, id, noun: d.noun }, replacement)
          await d.beforeDelete?.(ctx, row)
          await runDeleteHooks(ctx, entity, id)
          await bumpReferrers(ctx, { entity, table, id })
          if (d.refersTo !== undefined) await saveStoredReferences(ctx, { entity, id }, [])
          await detachReferrers(ctx, { table, id })
          await stored.delete(ctx, id)
          return { id, entity: null, leadOwners }
        })
      }
      await (below.restore !== undefined ? archiveThenDelete(ctx, { entity, table, id }, removal, keptDays) : removal())
      await d.onChange?.(ctx, id, { before })
    })
  return {
    remove: (ctx, id, replacement) => removeAs(ctx, id, replacement === undefined ? {} : { replacement }),
    removeMerged: removeAs,
  }
}

/** A resource whose rows name other records can name another one in their place. */
function replacing({ d }: ResourceParts, reader: RecordReader, { update }: Save): Pick<Writer, 'replaceNamed'> {
  const { replacing } = d
  if (replacing === undefined) return {}
  return {
    async replaceNamed(ctx, id, named, by) {
      assertCanCall(ctx, operations[d.operations.update])
      await update(ctx, id, await replacing(ctx, await reader.findRow(ctx, id), named, by))
    },
  }
}

/** Examiners check the rules for a body that the schema has refused. */
function examining({ d, below }: ResourceParts, reader: RecordReader): Pick<Writer, 'examiners'> {
  async function examine(
    ctx: Context,
    id: number | null,
    body: unknown,
    refused: readonly string[],
  ): Promise<FieldErrors> {
    const errors = new ValidationErrors(refused)
    if (d.governs?.some((field) => errors.isRefused(field))) return {}
    try {
      const current = id === null ? null : await reader.findRow(ctx, id)
      // Some rules create records while they run. In a dry run they create none.
      await d.toRow(body as AnyBody, { ctx: { ...ctx, dryRun: true }, current, errors })
      return errors.all
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500) throw error
      return { ...errors.all, ...error.more.errors }
    }
  }

  const onCreate: Examine = (ctx, { body }, refused) => examine(ctx, null, body, refused)
  const onUpdate: Examine = (ctx, { params, body }, refused) => examine(ctx, params.id as number, body, refused)
  const onUpsert: Examine = async (ctx, { params, body }, refused) =>
    examine(ctx, await idOfUpsert(ctx, d, params), body, refused)
  return {
    examiners: {
      [d.operations.create]: onCreate,
      [d.operations.update]: onUpdate,
      ...(below.upsert && { [below.upsert]: onUpsert }),
    },
  }
}

/** Returns a snapshot with the keys that only the event shows. */
const withShown = (snapshot: Snapshot, as: Change | undefined, at: 0 | 1): Snapshot =>
  as
    ? { ...snapshot, ...Object.fromEntries(Object.entries(as.shown).map(([key, values]) => [key, values[at]])) }
    : snapshot

/** Runs `work`, whose errors name fields of the body `field` of the request. */
async function inField<T>(field: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (field === undefined || !(error instanceof Problem) || error.more.errors === undefined) throw error
    const errors = Object.entries(error.more.errors).map(([key, sentences]) => [`${field}.${key}`, sentences])
    throw new Problem(error.code, undefined, { ...error.more, errors: Object.fromEntries(errors) })
  }
}

async function checkedPlan(
  ctx: Context,
  d: ResourceParts['d'],
  body: AnyBody,
  current: AnyRow | null,
): Promise<RowPlan> {
  const errors = new ValidationErrors(ctx.refused)
  const plan = await d.toRow(body, { ctx, current, errors })
  errors.throwIfAny()
  return plan
}

/** Warns when the body repeats an older version, whose values may have replaced newer ones. */
function warnOfNewer(ctx: Context, { version }: AnyRow): void {
  const { bodyVersion } = ctx
  if (bodyVersion === undefined || typeof version !== 'number' || bodyVersion >= version) return
  const sentence = `The record had version ${version}, so this body of version ${bodyVersion} may have replaced newer values. With If-Match, such a change is refused.`
  warn(ctx, 'version', sentence)
}

/** Writes the references of a stored row, if its definition has any. */
async function storeReferences(
  ctx: Context,
  { d, facts: { entity } }: Pick<ResourceParts, 'd' | 'facts'>,
  row: AnyRow,
): Promise<void> {
  if (d.refersTo !== undefined) await saveStoredReferences(ctx, { entity, id: row.id }, await d.refersTo(ctx, row))
}

/** Returns the changed fields that no reply contains. */
function hiddenFields(columns: readonly string[], isUnshown: boolean): string[] {
  const hidden = columns.filter((column) => isUnshown || hiddenSuffix.test(column))
  return [...new Set(hidden.map((column) => column.replace(/_(hash|key|sealed)$/, '')))]
}

interface Inserted {
  id: number
  shown: Snapshot
  isLinked: boolean
}

interface Update {
  id: number
  before: Snapshot
  plan: RowPlan
  /** Whether children were changed that the reply does not show. */
  isMerge: boolean
}

async function emitFollowUps(
  ctx: Context,
  { d, facts: { entity } }: Pick<ResourceParts, 'd' | 'facts'>,
  id: number,
  [before, after]: readonly [Snapshot | undefined, Snapshot],
): Promise<void> {
  const names = d.followUpEvents?.(before, after) ?? []
  if (names.length === 0) return
  const changed = changedKeys(before, after, derivedKeysOf(ctx, entity))
  for (const name of names) await emitOnly(ctx, name, { entity, id, ...(before && { before }), shown: after, changed })
}
