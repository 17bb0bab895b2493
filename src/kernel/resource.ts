// An everyday table as a resource: one description in, plain functions out (DESIGN 3). No flags and no subclassing; when a
// resource is special, its slice keeps, wraps or replaces these functions, or writes its own with `write` and `page`.
// This is the one file where `any` is allowed: the description is typed, the machinery behind it is generic.
import { type Expression, type SqlBool, sql } from 'kysely'
import type { DB as Tables } from '../../db/tables.gen.ts'
import { operations } from '../contract/operations.gen.ts'
import type { Body, Data, EventBase, OperationFact, OperationId } from '../contract/types.ts'
import { archiving } from './archive.ts'
import { type Context, now } from './context.ts'
import type { Definition, Include, Resource, Sorts } from './definition.ts'
import { Findings, notFound } from './errors.ts'
import { checkIfMatch } from './etag.ts'
import { changedKeys } from './eventlog.ts'
import type { Snapshot } from './events.ts'
import { conditions, type Fields, time, value } from './filter.ts'
import { capital } from './format.ts'
import { ask } from './kept.ts'
import { lean } from './lean.ts'
import { inOrder, pageOf, type Rows } from './page.ts'
import { touchReferrers } from './referrers.ts'
import { letGo } from './releases.ts'
import { restore } from './restore.ts'
import { seesDeleted } from './visibility.ts'
import { transaction, write } from './write.ts'

export type { Definition, Include, Resource, Writing } from './definition.ts'

const columnsBase = (table: string): Fields => ({
  id: value(`${table}.id`),
  created_at: time(`${table}.created_at`),
  updated_at: time(`${table}.updated_at`),
})

export function defineResource<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row,
>(
  d: Definition<Table, L, G, C, U, D, Row>,
): Resource<Data<G>, Body<U>> & { handlers: { [O in L | G | C | U | D]: any } } {
  type Reply = Data<G>
  const fact = (id: OperationId): OperationFact => operations[id]
  const entity = fact(d.operations.list).path.split('/').at(-1) ?? d.noun
  const event = (id: OperationId): EventBase => fact(id).events[0] as EventBase
  const { create, update, delete: remove } = d.operations
  const events = { create: event(create), update: event(update), delete: event(remove) }
  const restores = `${fact(d.operations.get).path}/restore`
  const isRestorable = Object.values(operations).some(({ path }) => path === restores)
  const table = d.table as string
  const idColumn = `${table}.id`
  const always = columnsBase(table)

  /** In no order. */
  const rowsOf = (ctx: Context, ids: readonly number[]): Promise<Row[]> =>
    ask(ctx, {
      name: `${entity}: rows`,
      values: ids,
      build: () => d.rows(ctx, ctx.db).where(sql.ref(idColumn), 'in', ids),
    })

  const byIds = async (ctx: Context, ids: readonly number[]): Promise<Map<number, any>> =>
    new Map((await rowsOf(ctx, ids)).map((row: any) => [row.id as number, row]))

  async function find(ctx: Context, id: number): Promise<Row> {
    const [row] = await rowsOf(ctx, [id])
    if (!row) throw notFound(d.noun, id)
    return row
  }

  async function present(ctx: Context, rows: readonly Row[], include: Include): Promise<Reply[]> {
    const replies = rows.map((row) => d.present(row, ctx))
    if (replies.length > 0) await d.gather?.(ctx, replies, include)
    return replies
  }

  const one = async (ctx: Context, row: Row, include: Include = []): Promise<Reply> =>
    (await present(ctx, [row], include))[0] as Reply

  async function filters(ctx: Context, query: any): Promise<Expression<SqlBool>[]> {
    return conditions(ctx, query, { ...always, ...(await d.filter(ctx, query)) }, d.search)
  }

  const narrowed = (rows: Rows<any>, filters: readonly Expression<SqlBool>[]): Rows<any> =>
    filters.reduce((rows, condition) => rows.where(condition), rows)

  const sorts = async (ctx: Context, query: any): Promise<Sorts<string>> =>
    typeof d.sort === 'function' ? d.sort(ctx, query) : d.sort

  const base: Resource<Reply, Body<U>> = {
    noun: d.noun,
    entity,
    table: d.table,
    shows: fact(d.operations.get),
    lists: fact(d.operations.list),
    events,

    async locate(ctx, id) {
      const row = await find(ctx, id)
      const { version } = row as { version?: number }
      if (version !== undefined) checkIfMatch(ctx, version)
    },

    async seen(ctx, ids) {
      if (ids.length === 0) return new Set()
      const wanted = [...new Set(ids)]
      const selected = (): Rows<{ id: number }> =>
        d
          .rows(ctx, ctx.db)
          .clearSelect()
          .select(sql<number>`${sql.ref(idColumn)}`.as('id'))
          .where(sql.ref(idColumn), 'in', wanted)
      const rows = await ask(ctx, { name: `${entity}: seen`, values: wanted, build: () => lean(selected()) })
      return new Set(rows.map(({ id }) => id))
    },

    async exists(ctx, id) {
      return (
        (await (ctx.db as any).selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()) !== undefined
      )
    },

    seesDeleted: (ctx, last) => seesDeleted(ctx, last, d.rows) && (d.opensDeleted?.(ctx, last) ?? true),

    async get(ctx, id, include = []) {
      return one(ctx, await find(ctx, id), include)
    },

    async many(ctx, ids) {
      const wanted = [...new Set(ids)]
      if (wanted.length === 0) return new Map()
      const replies = await present(ctx, await rowsOf(ctx, wanted), [])
      return new Map(replies.map((reply) => [(reply as any).id as number, reply]))
    },

    async list(ctx, query, narrow) {
      const wanted = await filters(ctx, query)
      const all = (): Rows<any> => d.rows(ctx, ctx.db)
      const rows = (): Rows<any> => narrowed(narrow ? narrow(all()) : all(), wanted)
      const { sql: text, parameters: values } = sql.join([sql`1 = 1`, ...wanted], sql` and `).compile(ctx.db)
      const {
        rows: shown,
        links,
        meta,
      } = await pageOf(
        ctx,
        { rows, text: narrow ? null : `${entity}: ${text}`, values, byIds: (ids) => byIds(ctx, ids) },
        query,
        await sorts(ctx, query),
        idColumn,
      )
      return { data: await present(ctx, shown as Row[], query.include ?? []), links, meta }
    },

    matching: async (ctx, query) =>
      inOrder(ctx, narrowed(d.rows(ctx, ctx.db), await filters(ctx, query)), query, await sorts(ctx, query), idColumn),

    create: (ctx, body) =>
      transaction(ctx, async (ctx) => {
        const found = new Findings()
        const columns = await d.columns(body, { ctx, current: null, found })
        found.settle()
        const { id } = await write(ctx, events.create, { entity, input: body }, async (ctx) => {
          const at = now(ctx)
          const inserted = await (ctx.db as any)
            .insertInto(table)
            .values({ ...columns, created_at: at, updated_at: at })
            .returning('id')
            .executeTakeFirstOrThrow()
          const id = inserted.id as number
          await d.settle?.(ctx, id, body)
          return { id, entity: (await written(ctx, id)) as Snapshot }
        })
        await d.link?.(ctx, id, body)
        return written(ctx, id)
      }),

    update: (ctx, id, body) =>
      transaction(ctx, async (ctx) => {
        const current = await find(ctx, id)
        const { version } = current as { version?: number }
        if (version !== undefined) checkIfMatch(ctx, version)
        const before = (await one(ctx, current)) as Snapshot
        const found = new Findings()
        const columns = await d.columns(body, { ctx, current, found })
        found.settle()
        let touched = false
        await write(ctx, events.update, { entity, input: body, id, before }, async (ctx) => {
          const stored = await (ctx.db as any)
            .selectFrom(table)
            .selectAll()
            .where('id', '=', id)
            .executeTakeFirstOrThrow()
          const changes = Object.fromEntries(
            Object.entries(columns).filter(([column, value]) => value !== undefined && stored[column] !== value),
          )
          if (Object.keys(changes).length > 0)
            await (ctx.db as any).updateTable(table).set(changes).where('id', '=', id).execute()
          await d.settle?.(ctx, id, body)
          let after = (await written(ctx, id)) as Snapshot
          // Columns that no reply shows still are a change, such as a password.
          const visible = changedKeys(before, after)
          const unseen = Object.keys(changes).filter((column) => visible.length === 0 || column.endsWith('_hash'))
          const hidden = [...new Set(unseen.map((column) => column.replace(/_(hash|key)$/, '')))]
          if (visible.length + hidden.length > 0) {
            await base.touch(ctx, id)
            touched = true
            after = (await written(ctx, id)) as Snapshot
          }
          return { id, entity: after, hidden }
        })
        // One request is one change: the version counts it once.
        if (((await d.link?.(ctx, id, body)) ?? false) && !touched) await base.touch(ctx, id)
        return written(ctx, id)
      }),

    async remove(ctx, id) {
      await transaction(ctx, async (ctx) => {
        const row = await find(ctx, id)
        const { version } = row as { version?: number }
        if (version !== undefined) checkIfMatch(ctx, version)
        const before = (await one(ctx, row)) as Snapshot
        const removal = () =>
          write(ctx, events.delete, { entity, input: {}, id, before }, async (ctx) => {
            await d.release?.(ctx, row)
            await letGo(ctx, entity, id)
            await touchReferrers(ctx, { entity, table, id })
            await (ctx.db as any).deleteFrom(table).where('id', '=', id).execute()
            return { id, entity: null }
          })
        await (isRestorable ? archiving(ctx, { entity, table, id }, removal) : removal())
      })
    },

    restore: (ctx, id) => restore(ctx, { resource: base, id, mend: d.mend, written: (ctx) => written(ctx, id) }),

    async touch(ctx, id) {
      await (ctx.db as any)
        .updateTable(table)
        .set({ version: sql`version + 1`, updated_at: now(ctx) })
        .where('id', '=', id)
        .execute()
    },
  }

  /** The record as it is after a write, also when the write moved it out of the caller's sight; its counts stay scoped. */
  async function written(ctx: Context, id: number): Promise<Reply> {
    return one(ctx, await find({ ...ctx, admitted: { table, id } }, id))
  }

  const message = (verb: string): string => `${capital(d.noun)} ${verb}.`
  const handlers = {
    [d.operations.list]: (ctx: Context, { query }: { query: any }) => base.list(ctx, query),
    [d.operations.get]: async (ctx: Context, { params, query }: any) => ({
      data: await base.get(ctx, params.id, query.include),
    }),
    [d.operations.create]: async (ctx: Context, { body }: any) => ({
      data: await base.create(ctx, body),
      message: message('created'),
    }),
    [d.operations.update]: async (ctx: Context, { params, body }: any) => ({
      data: await base.update(ctx, params.id, body),
      message: message('updated'),
    }),
    [d.operations.delete]: async (ctx: Context, { params }: any) => {
      await base.remove(ctx, params.id)
      return { message: message('deleted') }
    },
  }
  return { ...base, handlers } as any
}
