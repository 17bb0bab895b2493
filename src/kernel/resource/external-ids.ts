// The ids of records in other systems: one for each system, unique for its system and type of
// record. They are part of the reply, of bodies and of events; lists filter by them, and bodies
// refer to records by them. An upsert finds its record by one.
import { type Kysely, type SqlBool, sql } from 'kysely'
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import { bodyReader } from '../../contract/input/body-reader.ts'
import { operations } from '../../contract/operations.gen.ts'
import { withStatus } from '../../contract/output/status.ts'
import type { Body, OperationId, Reply } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../context.ts'
import { invalid, Problem, ValidationErrors } from '../errors.ts'
import type { Handler, HandlerInput } from '../handler.ts'
import { type FilterField, linkedField } from '../query/filter.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { transaction } from '../write/write.ts'
import type { AnyBody, AnyDefinition, AnyResource, AnyRow } from './any-definition.ts'
import type { ExternalIdTable, Writing } from './definition.ts'

/** The largest number of systems whose ids one record has. */
const maxSystems = 20

/** Returns the text by which an external id is stored, filtered and referred to: `hubspot:123`. */
export const externalIdText = (source: string, id: string): string => `${source}:${id}`

interface Known {
  owner: number
  source: string
  external_id: string
}

/** Returns the queries of a table. They are compiled once, as each row of an import runs them. */
const queriesOf = perOwner(({ table, column, former }: ExternalIdTable) => {
  const rows = (db: Db, from: string = table) =>
    (db as unknown as Kysely<Record<string, Known>>)
      .selectFrom(from)
      .select([sql.ref<number>(column).as('owner'), 'source', 'external_id'])
      .orderBy(column as 'owner')
      .orderBy('source')
  return {
    byOwner: cachedQuery((db: Db, ids: Bound<number[]>) => rows(db).where(sql.ref<number>(column), 'in', ids)),
    byText: cachedQuery((db: Db, texts: Bound<string[]>) => rows(db).where('external_id', 'in', texts)),
    save: cachedQuery((db: Db, owner: Bound<number>, source: Bound<string>, text: Bound<string>) =>
      (db as unknown as Kysely<Record<string, Record<string, unknown>>>)
        .insertInto(table)
        .values({ [column]: owner, source, external_id: text })
        .onConflict((conflict) =>
          conflict.columns([column, 'source']).doUpdateSet(({ ref }) => ({ external_id: ref('excluded.external_id') })),
        ),
    ),
    byFormer:
      former && cachedQuery((db: Db, texts: Bound<string[]>) => rows(db, former).where('external_id', 'in', texts)),
    formerOf:
      former &&
      cachedQuery((db: Db, owner: Bound<number>) =>
        rows(db, former)
          .where(sql.ref<number>(column), '=', owner)
          .where(
            sql<SqlBool>`exists (select 1 from ${sql.table(table)} as own
              where ${sql.ref(`own.${column}`)} = ${sql.ref(`${former}.${column}`)} and own.source = ${sql.ref(`${former}.source`)})`,
          ),
      ),
  }
})

const byOwner = ({ db }: Context, at: ExternalIdTable, ids: readonly number[]): Promise<Known[]> =>
  queriesOf(at).byOwner(db, ids)
async function byText({ db }: Context, at: ExternalIdTable, texts: readonly string[]): Promise<Known[]> {
  const { byText, byFormer } = queriesOf(at)
  const found = await byText(db, texts)
  const isAllFound = byFormer === undefined || found.length === texts.length
  return isAllFound ? found : [...found, ...(await byFormer(db, texts))]
}

/** Returns the filter by external ids, also by those of merged records. */
function externalIdField(table: string, { table: link, column, former }: ExternalIdTable): FilterField {
  if (former === undefined) return linkedField(link, `${table}.id`, column, 'external_id')
  const owners = (from: string, values: readonly unknown[]) =>
    sql`select link.${sql.ref(column)} from ${sql.table(from)} as link where link.external_id in (${sql.join(values)})`
  return {
    kind: 'condition',
    isIndexed: true,
    where: (values) =>
      sql<SqlBool>`${sql.ref(`${table}.id`)} in (${owners(link, values)} union all ${owners(former, values)})`,
  }
}

/** Adds external ids to a definition whose table has some. */
export function withExternalIds(d: AnyDefinition, entity: string): AnyDefinition {
  const at = d.externalIds
  if (at === undefined) return d
  return {
    ...d,
    filter: { ...d.filter, external_id: externalIdField(d.table, at) },
    namedBy: {
      ...d.namedBy,
      keys: {
        ...d.namedBy?.keys,
        external_id: async (ctx, texts) => {
          const found = await byText(ctx, at, texts)
          return new Map(found.map(({ external_id, owner }) => [external_id, [owner]]))
        },
      },
    },
    toRow: async (body, writing) => {
      const plan = await d.toRow(body, writing)
      const sent = body.external_ids as Sent | undefined
      if (sent === undefined) return plan
      await checkExternalIds(writing, d, { at, entity }, sent)
      return {
        ...plan,
        save: async (ctx, id) => {
          await plan.save?.(ctx, id)
          await saveExternalIds(ctx, at, id, sent)
        },
      }
    },
    loadRelated: async (ctx, replies, include) => {
      await d.loadRelated?.(ctx, replies, include)
      const ids = replies.map(({ id }) => id as number)
      const shown = new Map<unknown, Record<string, string>>(ids.map((id) => [id, {}]))
      for (const { owner, source, external_id } of await byOwner(ctx, at, ids))
        Object.assign(shown.get(owner) ?? {}, { [source]: external_id.slice(source.length + 1) })
      for (const reply of replies) reply.external_ids = shown.get(reply.id) ?? {}
    },
  }
}

type Sent = Readonly<Record<string, string | null>>

async function checkExternalIds(
  { ctx, current, errors }: Writing<AnyRow>,
  { noun, beforeExternalIds }: AnyDefinition,
  { at, entity }: { at: ExternalIdTable; entity: string },
  sent: Sent,
): Promise<void> {
  const texts = Object.entries(sent).flatMap(([source, id]) => (id === null ? [] : [externalIdText(source, id)]))
  for (const { owner, source } of await byText(ctx, at, texts)) {
    if (owner === current?.id) continue
    const seen = await ctx.services.resources.get(entity)?.visibleIds(ctx, [owner])
    const field = `external_ids.${source}`
    errors.taken(field, entity, seen?.has(owner) ? owner : null, `Another ${noun} has this external id.`)
  }
  const known = current === null ? [] : await byOwner(ctx, at, [current.id])
  const systems = new Set([...known.map(({ source }) => source), ...Object.keys(sent)])
  for (const [source, id] of Object.entries(sent)) if (id === null) systems.delete(source)
  if (systems.size > maxSystems) errors.invalid('external_ids', `Must not have more than ${maxSystems} entries.`)
  if (current === null || errors.any) return
  const before = new Map(known.map(({ source, external_id }) => [source, external_id]))
  const differs = ([source, id]: [string, string | null]): boolean =>
    before.get(source) !== (id === null ? undefined : externalIdText(source, id))
  if (Object.entries(sent).some(differs)) await beforeExternalIds?.(ctx, current)
}

async function saveExternalIds(ctx: Context, at: ExternalIdTable, id: number, sent: Sent) {
  const { db } = ctx
  const former = await formerIdsOf(ctx, at, id)
  const [link, owner] = [sql.table(at.table), sql.ref(at.column)]
  for (const [source, value] of Object.entries(sent)) {
    const text = value === null ? null : externalIdText(source, value)
    if (text === null) await sql`delete from ${link} where ${owner} = ${id} and source = ${source}`.execute(db)
    else if (!former.has(text)) await queriesOf(at).save(db, id, source, text)
  }
}

/**
 * Returns the external ids of merged records that find a record beside its own of the same system.
 * They do not replace it, so that an import with both ids changes neither.
 */
async function formerIdsOf({ db }: Context, at: ExternalIdTable, id: number): Promise<Set<string>> {
  const found = (await queriesOf(at).formerOf?.(db, id)) ?? []
  return new Set(found.map((row) => row.external_id))
}

async function idOfText(ctx: Context, { namedBy }: Pick<Upserted, 'namedBy'>, text: string): Promise<number | null> {
  const find = namedBy?.keys.external_id
  return typeof find === 'function' ? ((await find(ctx, [text])).get(text)?.[0] ?? null) : null
}

/** Returns the id of the record that the path of an upsert names; null when there is none. */
export const idOfUpsert = (
  ctx: Context,
  d: Pick<AnyDefinition, 'namedBy'>,
  { source, external_id: id }: Record<string, unknown>,
): Promise<number | null> => idOfText(ctx, d, externalIdText(String(source), String(id)))

interface UpsertInput<B> {
  params: { source: string; external_id: string }
  body: B
}

/** How an upsert creates and updates a record: as the operations with these ids do. */
interface UpsertWays<C extends OperationId, U extends OperationId> {
  create: C
  update: U
  creating: Handler<C>
  updating: Handler<U>
  /** Returns keys to add to the body. Runs before the transaction, for work that takes long. */
  prepare?: (ctx: Context, body: Body<U>) => Promise<object>
  isLong?: boolean
}

/** The part of a resource that an upsert uses. */
type Upserted = Pick<AnyResource, 'noun' | 'entity' | 'namedBy' | 'visibleIds'>

/**
 * Returns the handler that updates the record with an external id, or creates it. Answers 412 when
 * `If-None-Match: *` or `If-Match` forbids what would happen, and 409 when the caller may not see
 * the record with the id.
 */
export function upsertHandler<C extends OperationId, U extends OperationId>(
  resource: Upserted,
  { create, update, creating, updating, prepare, isLong = false }: UpsertWays<C, U>,
): (ctx: Context, input: UpsertInput<Body<U>>) => Promise<Reply<C> | Reply<U>> {
  const { noun, entity } = resource
  return async (ctx, { params: { source, external_id: id }, body: sent }) => {
    const body = sent as AnyBody
    const added = (await prepare?.(ctx, sent)) ?? {}
    const own = (body.external_ids as Sent | undefined)?.[source]
    if (own !== undefined && own !== id)
      throw invalid({ [`external_ids.${source}`]: ['Must be the external id in the path, or left out.'] })
    const carryOut = async (ctx: Context): Promise<Reply<C> | Reply<U>> => {
      const known = await idOfText(ctx, resource, externalIdText(source, id))
      if (known === null) {
        if (ctx.ifMatch !== null) throw new Problem('version_mismatch', `No ${noun} has this external id.`)
        const ids = { ...(body.external_ids as Sent | undefined), [source]: id }
        const read = newBody(ctx, create, { ...body, external_ids: ids })
        return creating(ctx, { params: {}, query: {}, body: { ...read, ...added } } as unknown as HandlerInput<C>)
      }
      if (ctx.headers['if-none-match'] !== undefined)
        throw new Problem('version_mismatch', `The ${noun} exists already.`)
      assertCanCall(ctx, operations[update])
      if (!(await resource.visibleIds(ctx, [known])).has(known)) {
        const errors = new ValidationErrors()
        errors.taken('external_id', entity, null, `Another ${noun} has this external id.`)
        errors.throwIfAny()
      }
      const input = { params: { id: known }, query: {}, body: { ...body, ...added } }
      return withStatus((await updating(ctx, input as unknown as HandlerInput<U>)) as object, 200) as Reply<U>
    }
    return transaction(ctx, carryOut, { isLong })
  }
}

/** Reads a body by the schema of the operation that creates, which requires more than an update. */
export function newBody({ services: { contract, config } }: Context, create: OperationId, body: AnyBody): AnyBody {
  const { value, errors } = bodyReader(contract, create)(body, { zone: config.timezone, strict: config.strict })
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return value as AnyBody
}
