// Creates and updates a record: checks the rules, writes the row and its children, emits events,
// saves links.
import { type Context, now, warn } from '../context.ts'
import { ValidationErrors } from '../errors.ts'
import { saveStoredReferences } from '../history/stored-references.ts'
import { insert } from '../query/insert.ts'
import { changedKeys, derivedKeysOf } from '../write/event-log.ts'
import type { Snapshot } from '../write/events.ts'
import { emitOnly, transaction, type UnitOfWork, write } from '../write/write.ts'
import type { AnyBody, AnyResource, AnyRow, ResourceParts } from './any-definition.ts'
import type { RowPlan } from './definition.ts'
import type { RecordReader } from './read-records.ts'

type InTransaction = Context & { unit: UnitOfWork }

/**
 * Matches columns that no reply contains. A new value in such a column still counts as a change of
 * the record.
 */
const hiddenSuffix = /_(hash|sealed)$/

export function createSaver(
  { d, facts, stored }: ResourceParts,
  reader: RecordReader,
): Pick<AnyResource, 'create' | 'add' | 'update'> {
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
      return { id, entity: shown }
    })
    await emitFollowUps(ctx, { d, facts }, id, [undefined, shown])
    return { id, shown, isLinked: await saveLinks(ctx, id, body, true) }
  }

  /**
   * Updates the row and its children. Returns the reply after the update, the changed fields that
   * no reply contains, and whether anything changed.
   */
  async function updateRow(ctx: Context, { id, before, plan: { columns, save } }: Update) {
    const sent = Object.entries(columns).filter(([, value]) => value !== undefined)
    const own = sent.length > 0 ? await stored.read(ctx, id) : {}
    const changes = Object.fromEntries(sent.filter(([column, value]) => own[column] !== value))
    const isRowChanged = Object.keys(changes).length > 0
    if (isRowChanged) await stored.update(ctx, id, changes)
    await save?.(ctx, id)
    const row = await reader.findWritten(ctx, id)
    await storeReferences(ctx, { d, facts }, row)
    const after = await reader.toReply(ctx, row)
    const shown = changedKeys(before, after, derivedKeysOf(ctx, entity))
    const hidden = hiddenFields(Object.keys(changes), shown.length === 0)
    if (isRowChanged) return { after, hidden, isTouched: true }
    if (shown.length === 0) return { after, hidden, isTouched: false }
    // Only children changed, so the version of the row has not been raised yet.
    await stored.touch(ctx, id)
    return { after: await reader.toReply(ctx, await reader.findWritten(ctx, id)), hidden, isTouched: true }
  }

  return {
    add: (ctx, body) => transaction(ctx, async (ctx) => (await insertRecord(ctx, body)).id),

    create: (ctx, body) =>
      transaction(ctx, async (ctx) => {
        const { id, shown, isLinked } = await insertRecord(ctx, body)
        return replyOf(ctx, id, shown, isLinked)
      }),

    update: (ctx, id, body) =>
      transaction(ctx, async (ctx) => {
        const current = await reader.findCurrent(ctx, id)
        const before = await reader.toReply(ctx, current)
        const plan = await checkedPlan(ctx, d, body, current)
        let shown = before
        let isTouched = false
        await write(ctx, events.update, { entity, input: maskInput(body), id, before }, async (ctx) => {
          const updated = await updateRow(ctx, { id, before, plan })
          shown = updated.after
          isTouched = updated.isTouched
          return { id, entity: shown, hidden: updated.hidden }
        })
        if (isTouched) await emitFollowUps(ctx, { d, facts }, id, [before, shown])
        const isLinked = await saveLinks(ctx, id, body, false)
        // `isTouched` means that `updateRow` has already raised the version, which may rise only
        // once per request.
        if (isLinked && !isTouched) await stored.touch(ctx, id)
        if (isLinked || isTouched) warnOfNewer(ctx, current)
        return replyOf(ctx, id, shown, isLinked)
      }),
  }
}

async function checkedPlan(
  ctx: Context,
  d: ResourceParts['d'],
  body: AnyBody,
  current: AnyRow | null,
): Promise<RowPlan> {
  const errors = new ValidationErrors()
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
