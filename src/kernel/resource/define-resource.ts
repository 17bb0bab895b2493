// An everyday table as a resource: one description in, plain functions out (DESIGN 3). No flags and no subclassing; when a
// resource is special, its slice keeps, wraps or replaces these functions, or writes its own with `write` and `page`.
// This is the one file where `any` is allowed: the description is typed, the machinery behind it is generic.
import { type SqlBool, sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Body, Data, EventBase, OperationFact, OperationId } from '../../contract/types.ts'
import { type Context, now, warned } from '../context.ts'
import { notFound, Problem, ValidationErrors } from '../errors.ts'
import type { HandlersFor } from '../handler.ts'
import { archiveThenDelete } from '../history/archive.ts'
import { bumpReferrers } from '../history/backreferences.ts'
import { runDeleteHooks } from '../history/delete-hooks.ts'
import { restore } from '../history/restore.ts'
import { always } from '../query/event-visibility.ts'
import { cacheable } from '../query/response-cache.ts'
import { insert, queryCached } from '../query/statement-cache.ts'
import { visible, withoutVisibility } from '../query/visibility.ts'
import { capital } from '../values/format.ts'
import { checkIfMatch } from '../write/etag.ts'
import { changedKeys } from '../write/event-log.ts'
import type { Snapshot } from '../write/events.ts'
import { emitOnly, transaction, write } from '../write/write.ts'
import type { Definition, Include, Resource } from './definition.ts'
import { rowsOf } from './rows.ts'

export type { Definition, Include, Resource, Writing } from './definition.ts'

export function defineResource<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row,
>(d: Definition<Table, L, G, C, U, D, Row>): Resource<Data<G>, Body<U>> & { handlers: HandlersFor<L | G | C | U | D> } {
  type Reply = Data<G>
  const fact = (id: OperationId): OperationFact => operations[id]
  const entity = fact(d.operations.list).path.split('/').at(-1) ?? d.noun
  const event = (id: OperationId): EventBase => fact(id).events[0] as EventBase
  const { create, update, delete: remove } = d.operations
  const events = { create: event(create), update: event(update), delete: event(remove) }
  const restores = `${fact(d.operations.get).path}/restore`
  const isRestorable = Object.values(operations).some(({ path }) => path === restores)
  const table = d.table as string

  const told = (body: Body<U>): Body<U> => d.told?.(body) ?? body
  const stored = rowsOf<Row>(d as any, { entity, table })

  async function find(ctx: Context, id: number): Promise<Row> {
    const [row] = await stored.byIds(ctx, [id])
    if (!row) throw notFound(d.noun, id)
    return row
  }

  async function present(ctx: Context, rows: readonly Row[], include: Include): Promise<Reply[]> {
    const replies = rows.map((row) => d.toReply(row, ctx))
    if (replies.length > 0) await d.loadRelated?.(ctx, replies, include)
    return replies
  }

  const one = async (ctx: Context, row: Row, include: Include = []): Promise<Reply> =>
    (await present(ctx, [row], include))[0] as Reply

  /** Where a limited view puts no other condition on the rows than a global one, everybody sees all of them. */
  const isOpen = (ctx: Context): boolean => {
    const condition = (ctx: Context): string => d.rows(ctx, ctx.db).clearSelect().compile().sql
    return condition(ctx) === condition(withoutVisibility(ctx))
  }

  const base: Resource<Reply, Body<U>> = {
    noun: d.noun,
    entity,
    table: d.table,
    getOperation: fact(d.operations.get),
    listOperation: fact(d.operations.list),
    events,

    sight: {
      lists: fact(d.operations.list),
      records: {
        table: d.table,
        deleted: events.delete,
        seen: stored.seen,
        async inSight(ctx) {
          const rows = (await stored.matching(ctx, {})).clearSelect().clearOrderBy()
          return rows.select(sql<number>`${sql.ref(`${table}.id`)}`.as('id'))
        },
        wasInSight(ctx) {
          const isOwnerSeen = isOpen(ctx) ? always : visible(ctx, 'known.owner_id')
          return d.wasInSight ? sql<SqlBool>`(${isOwnerSeen} and ${d.wasInSight(ctx)})` : isOwnerSeen
        },
      },
      ...(d.asRead && { asRead: d.asRead }),
    },

    async assertVisible(ctx, id) {
      const row = await find(ctx, id)
      const { version } = row as { version?: number }
      if (version !== undefined) checkIfMatch(ctx, version)
    },

    visibleIds: stored.seen,

    async exists(ctx, id) {
      return (
        (await (ctx.db as any).selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()) !== undefined
      )
    },

    async get(ctx, id, include = []) {
      return one(ctx, await find(ctx, id), include)
    },

    async getMany(ctx, ids) {
      const wanted = [...new Set(ids)]
      if (wanted.length === 0) return new Map()
      const replies = await present(ctx, await stored.byIds(ctx, wanted), [])
      return new Map(replies.map((reply) => [(reply as any).id as number, reply]))
    },

    async list(ctx, query, narrow) {
      const { rows, links, meta } = await stored.page(ctx, query, narrow)
      return { data: await present(ctx, rows as Row[], query.include ?? []), links, meta }
    },

    query: stored.matching,

    add: (ctx, body) => transaction(ctx, async (ctx) => (await created(ctx, body)).id),

    create: (ctx, body) =>
      transaction(ctx, async (ctx) => {
        const { id, row, isLinked } = await created(ctx, body)
        return isLinked ? written(ctx, id) : shown(ctx, id, row)
      }),

    update: (ctx, id, body) =>
      transaction(ctx, async (ctx) => {
        const current = await find(ctx, id)
        const { version } = current as { version?: number }
        if (version !== undefined) checkIfMatch(ctx, version)
        const before = (await one(ctx, current)) as Snapshot
        const found = new ValidationErrors()
        const columns = await d.toRow(body, { ctx, current, found })
        found.throwIfAny()
        let touched = false
        let row = current
        await write(ctx, events.update, { entity, input: told(body), id, before }, async (ctx) => {
          const stored = await storedIn(ctx, id)
          const changes = Object.fromEntries(
            Object.entries(columns).filter(([column, value]) => value !== undefined && stored[column] !== value),
          )
          if (Object.keys(changes).length > 0)
            await (ctx.db as any).updateTable(table).set(changes).where('id', '=', id).execute()
          await d.afterSave?.(ctx, id, body)
          row = await rowOf(ctx, id)
          let after = (await one(ctx, row)) as Snapshot
          // Columns that no reply shows still are a change, such as a password.
          const visible = changedKeys(before, after)
          const unseen = Object.keys(changes).filter((column) => visible.length === 0 || /_(hash|sealed)$/.test(column))
          const hidden = [...new Set(unseen.map((column) => column.replace(/_(hash|key|sealed)$/, '')))]
          if (visible.length + hidden.length > 0) {
            await base.touch(ctx, id)
            touched = true
            row = await rowOf(ctx, id)
            after = (await one(ctx, row)) as Snapshot
          }
          return { id, entity: after, hidden }
        })
        if (touched) await followUp(ctx, before, (await one(ctx, row)) as Snapshot, id)
        const isLinked = await link(ctx, id, body, false)
        // One request is one change: the version counts it once.
        if (isLinked && !touched) await base.touch(ctx, id)
        return isLinked ? written(ctx, id) : shown(ctx, id, row)
      }),

    examiners: {
      [create]: (ctx: Context, { body }: any, refused: readonly string[]) => examine(ctx, null, body, refused),
      [update]: (ctx: Context, { params, body }: any, refused: readonly string[]) =>
        examine(ctx, params.id, body, refused),
    },

    async remove(ctx, id) {
      await transaction(ctx, async (ctx) => {
        const row = await find(ctx, id)
        const { version } = row as { version?: number }
        if (version !== undefined) checkIfMatch(ctx, version)
        const before = (await one(ctx, row)) as Snapshot
        const removal = () =>
          write(ctx, events.delete, { entity, input: {}, id, before }, async (ctx) => {
            await d.beforeDelete?.(ctx, row)
            await runDeleteHooks(ctx, entity, id)
            await bumpReferrers(ctx, { entity, table, id })
            await (ctx.db as any).deleteFrom(table).where('id', '=', id).execute()
            return { id, entity: null }
          })
        await (isRestorable ? archiveThenDelete(ctx, { entity, table, id }, removal) : removal())
      })
    },

    restore: (ctx, id) => restore(ctx, { resource: base, id, mend: d.onRestore, written: (ctx) => written(ctx, id) }),

    async touch(ctx, id) {
      const values = [now(ctx), id]
      const touched = () =>
        (ctx.db as any)
          .updateTable(table)
          .set({ version: sql`version + 1`, updated_at: values[0] })
          .where('id', '=', id)
      await queryCached(ctx, { name: `${entity}: touch`, values, build: touched })
    },
  }

  const storedIn = (ctx: Context, id: number): Promise<Record<string, unknown>> =>
    (ctx.db as any).selectFrom(table).selectAll().where('id', '=', id).executeTakeFirstOrThrow()

  async function examine(ctx: Context, id: number | null, body: Body<U>, refused: readonly string[]) {
    const found = new ValidationErrors(refused)
    if (d.governs?.some((field) => found.isRefused(String(field)))) return {}
    try {
      const current = id === null ? null : await find(ctx, id)
      // Nothing is created on the way while anything is wrong; a dry run makes sure of it.
      await d.toRow(body, { ctx: { ...ctx, dryRun: true }, current, found })
      return found.all
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500) throw error
      return { ...found.all, ...error.more.errors }
    }
  }

  /** The record with its events. In a transaction. */
  async function created(ctx: Context, body: Body<U>): Promise<{ id: number; row: Row; isLinked: boolean }> {
    const found = new ValidationErrors()
    const columns = await d.toRow(body, { ctx, current: null, found })
    found.throwIfAny()
    let row: Row | undefined
    const { id } = await write(ctx, events.create, { entity, input: told(body) }, async (ctx) => {
      const at = now(ctx)
      const id = await insert(ctx, table, { ...columns, created_at: at, updated_at: at })
      await d.afterSave?.(ctx, id, body)
      row = await rowOf(ctx, id)
      return { id, entity: (await one(ctx, row)) as Snapshot }
    })
    return { id, row: row as Row, isLinked: await link(ctx, id, body, true) }
  }

  /** What follows from a change is told of behind it. */
  async function followUp(ctx: Context, before: Snapshot, after: Snapshot, id: number): Promise<void> {
    for (const name of d.follows?.(before, after) ?? [])
      await emitOnly(ctx, name, { entity, id, before, shown: after, changed: changedKeys(before, after) })
  }

  /** The row as it is after a write, also when the write moved it out of the caller's sight. */
  const rowOf = (ctx: Context, id: number): Promise<Row> => find({ ...ctx, visibleRecord: { table, id } }, id)

  const written = async (ctx: Context, id: number): Promise<Reply> => one(ctx, await rowOf(ctx, id))

  /** Its version is counted by whoever calls this; in tests it is looked whether it was left alone. */
  async function link(ctx: Context, id: number, body: Body<U>, isNew: boolean): Promise<boolean> {
    if (d.saveLinks === undefined) return false
    const isTest = ctx.services.config.env === 'test'
    const stored = async () => JSON.stringify(isTest && (await storedIn(ctx, id)))
    const before = await stored()
    const isLinked = await d.saveLinks(ctx, id, body, isNew)
    if ((await stored()) !== before) throw new Error(`What links a ${d.noun} to others has changed its own row.`)
    return isLinked
  }

  /** The record of a row that was read before `link`, which says that it has changed nothing; in tests it is looked at. */
  async function shown(ctx: Context, id: number, row: Row): Promise<Reply> {
    if (ctx.services.config.env === 'test' && JSON.stringify(row) !== JSON.stringify(await rowOf(ctx, id)))
      throw new Error(`What links a ${d.noun} to others has changed it and did not say so.`)
    return one(ctx, row)
  }

  const message = (verb: string): string => `${capital(d.noun)} ${verb}.`
  const handlers = {
    [d.operations.list]: cacheable((ctx: Context, { query }: { query: any }) => base.list(ctx, query)),
    [d.operations.get]: cacheable(async (ctx: Context, { params, query }: any) => ({
      data: await base.get(ctx, params.id, query.include),
    })),
    [d.operations.create]: async (ctx: Context, { body }: any) => ({
      data: await base.create(ctx, body),
      message: message('created'),
      ...warned(ctx),
    }),
    [d.operations.update]: async (ctx: Context, { params, body }: any) => ({
      data: await base.update(ctx, params.id, body),
      message: message('updated'),
      ...warned(ctx),
    }),
    [d.operations.delete]: async (ctx: Context, { params }: any) => {
      await base.remove(ctx, params.id)
      return { message: message('deleted') }
    },
  }
  return { ...base, handlers } as any
}
