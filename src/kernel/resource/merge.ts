// Merges records into one of them, and takes a merge back. The merged records are deleted with an
// archive, after everything that refers to them was moved. The table `<noun>_merges` keeps what
// moved, for redirects, histories and the way back.
import { sql } from 'kysely'
import { bodyReader } from '../../contract/input/body-reader.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { EventBase } from '../../contract/types.ts'
import { assertCanCall, type Context, now } from '../context.ts'
import { invalid, Problem, ValidationErrors } from '../errors.ts'
import { amendArchive, chunks, type Row } from '../history/archive.ts'
import { bumpReferrers } from '../history/backreferences.ts'
import {
  type Moved,
  moveBack,
  moveReferences,
  releaseLinks,
  type UnmergeConflict,
} from '../history/moved-references.ts'
import { rulesNaming } from '../history/stored-references.ts'
import { withoutVisibility } from '../query/visibility.ts'
import { daysAfter } from '../runtime/clock.ts'
import { capital } from '../values/format.ts'
import type { Snapshot } from '../write/events.ts'
import { type InTransaction, transaction } from '../write/write.ts'
import type { AnyBody, AnyDefinition, AnyResource, ResourceParts } from './any-definition.ts'
import { refreshMatchKeys } from './duplicates.ts'
import { mergedFields, movedLinks } from './merge-plan.ts'
import type { Merges, MovedValue } from './merging.ts'
import type { RecordReader } from './read-records.ts'
import { changesBetween, giveBack, type RowChanges, unite } from './united-rows.ts'
import type { Writer } from './write-records.ts'

/** The number of days during which a merge can be taken back. */
const unmergeDays = 90

/** The links and values that moved from a merged record to the winner. */
interface Moves {
  links: Moved[]
  values: MovedValue[]
  /** The stored rules that name the other record instead. */
  rules: { entity: string; id: number }[]
  files: number[]
  /** The external ids without a place, because the other record has one of the same system. */
  formerIds: string[]
  columns: RowChanges
}

interface Parts extends ResourceParts {
  d: AnyDefinition & Required<Pick<AnyDefinition, 'merging'>>
  reader: RecordReader
  resource: AnyResource & Pick<Writer, 'change' | 'removeMerged'>
}

const isMerging = (parts: ResourceParts): parts is Parts => parts.d.merging !== undefined

const ownerOf = ({ d }: Pick<ResourceParts, 'd'>) => sql.ref(`${d.noun}_id`)
const mergesOf = ({ d }: Pick<ResourceParts, 'd'>) => sql.table(`${d.noun}_merges`)
const formerIdsOf = ({ d }: Pick<ResourceParts, 'd'>) => sql.table(`${d.noun}_former_ids`)

const eventOf = ({ facts }: ResourceParts, verb: 'merge' | 'unmerge'): EventBase =>
  facts.events.update.replace(/update$/, verb) as EventBase

export function createMerges(parts: ResourceParts, reader: RecordReader): Merges | undefined {
  if (!isMerging(parts)) return undefined
  return {
    async into({ db }, id) {
      const found = sql<{ id: number }>`select ${ownerOf(parts)} as id from ${mergesOf(parts)} where merged_id = ${id}`
      return (await found.execute(db)).rows[0]?.id ?? null
    },
    async of({ db }, id) {
      const found = sql<{ id: number }>`select merged_id as id from ${mergesOf(parts)}
        where ${ownerOf(parts)} = ${id} order by merged_id`
      return (await found.execute(db)).rows.map((row) => row.id)
    },
    refreshKeys: (ctx, ids) =>
      refreshMatchKeys(ctx, parts, ids, (some) => reader.getMany(withoutVisibility(ctx), some)),
  }
}

interface MergeInput {
  params: { id: number }
  body: { ids: number[]; fields?: AnyBody }
}

/** Returns the handlers of merges. */
export function handlersOfMerges(parts: ResourceParts & Pick<Parts, 'reader' | 'resource'>) {
  const { below } = parts
  if (!isMerging(parts)) return {}
  return {
    ...(below.merge && {
      [below.merge]: (ctx: Context, { params, body }: MergeInput) =>
        transaction(ctx, (ctx) => merge(ctx, parts, params.id, body)),
    }),
    ...(below.unmerge && {
      [below.unmerge]: (ctx: Context, { params, body }: { params: { id: number }; body: { id: number } }) =>
        transaction(ctx, (ctx) => unmerge(ctx, parts, params.id, body.id)),
    }),
  }
}

async function merge(ctx: InTransaction, parts: Parts, id: number, { ids, fields = {} }: MergeInput['body']) {
  const { d, facts, reader, resource, stored } = parts
  assertCanCall(ctx, operations[d.operations.update])
  const current = await reader.findCurrent(ctx, id)
  const others = await reader.getMany(ctx, ids)
  const errors = new ValidationErrors(ctx.refused)
  checkIds(errors, d, id, ids, others)
  // A value that a merged record has is free after the merge, which checks it again.
  const inFields = Object.assign(errors.nested('fields'), { taken: () => {} })
  if (Object.keys(fields).length > 0)
    await d.toRow(fields, { ctx: { ...ctx, dryRun: true }, current, errors: inFields })
  errors.throwIfAny()
  const sent = new Set(Object.keys(fields))
  const all: Moves[] = []
  let before: Snapshot = {}
  let united: Row = {}
  const after = await resource.change(ctx, id, fields, {
    event: eventOf(parts, 'merge'),
    input: { ids, fields },
    shown: { merged: [[], ids] },
    field: 'fields',
    async first(ctx, shown) {
      before = shown
      for (const other of ids) all.push(await absorb(ctx, parts, { id, other, sent }))
      united = (await stored.read(ctx, id)) as Row
    },
  })
  const [first] = all
  const bySent = changesBetween(united, (await stored.read(ctx, id)) as Row)
  for (const [column, change] of Object.entries(bySent))
    if (first) first.columns[column] = { before: first.columns[column]?.before ?? change.before, after: change.after }
  for (const [index, moves] of all.entries())
    await sql`insert into ${mergesOf(parts)} (${ownerOf(parts)}, merged_id, into_id, moves, created_at)
      values (${id}, ${ids[index]}, ${id}, ${JSON.stringify(moves)}, ${now(ctx)})`.execute(ctx.db)
  const links = all.flatMap((moves) => moves.links)
  await refreshKeysOf(ctx, links)
  const shown = new Map([[id, before], ...others])
  return {
    data: after,
    message: `${capital(facts.entity)} merged.`,
    meta: {
      merged_ids: ids,
      fields: mergedFields(ctx, d, { shown, after, sent }),
      moved: await movedLinks(ctx, links),
    },
  }
}

function checkIds(
  errors: ValidationErrors,
  { noun }: AnyDefinition,
  id: number,
  ids: readonly number[],
  others: ReadonlyMap<number, unknown>,
): void {
  for (const [index, other] of ids.entries())
    if (other === id) errors.invalid(`ids.${index}`, `Must be another ${noun}.`)
    else if (ids.indexOf(other) < index) errors.invalid(`ids.${index}`, 'Must not be in the list twice.')
    else if (!others.has(other)) errors.invalid(`ids.${index}`, `No ${noun} has id ${other}.`)
}

interface Absorbed {
  id: number
  other: number
  /** The fields that the request sets. */
  sent: ReadonlySet<string>
}

/** Moves everything of a record to another one, and deletes the record. */
async function absorb(ctx: Context, parts: Parts, { id, other, sent }: Absorbed): Promise<Moves> {
  const { d, facts, resource, stored } = parts
  const { entity } = facts
  const { merging, table } = d
  const from = (await stored.read(ctx, other)) as Row
  const naming = await rulesNaming(ctx, { entity, id: other })
  const both = new Set((await rulesNaming(ctx, { entity, id })).map((rule) => `${rule.entity} ${rule.id}`))
  const moves: Omit<Moves, 'columns'> = {
    ...{ links: [], values: [], formerIds: [], files: [] },
    rules: naming.filter((rule) => !both.has(`${rule.entity} ${rule.id}`)),
  }
  await resource.removeMerged(withoutVisibility(ctx), other, {
    ...(naming.length > 0 && { replacement: id }),
    keptDays: unmergeDays,
    async first(ctx) {
      await bumpReferrers(ctx, { entity, table, id: other })
      const derived = new Set([...merging.derived, `${d.noun}_match_keys`])
      moves.links = await moveReferences(ctx, { table, from: other, to: id, derived })
      moves.formerIds = await keepFormerIds(ctx, parts, other, id)
      moves.values = (await merging.moveValues?.(ctx, other, id)) ?? []
    },
  })
  // Read now, because the row may have named the merged record.
  const to = (await stored.read(ctx, id)) as Row
  const columns = unite(merging, to, from, sent)
  checkLists(ctx, d, columns)
  const values = Object.values(JSON.parse(String(columns.custom_attributes ?? '{}')) as AnyBody)
  const ids = values.filter((value) => typeof value === 'number')
  moves.files = (await merging.moveFiles?.(ctx, { from: other, to: id, ids })) ?? []
  await setColumns(ctx, parts, id, columns)
  return { ...moves, columns: changesBetween(to, (await stored.read(ctx, id)) as Row) }
}

/** Throws 422 when a united list has more entries than the field may have. */
function checkLists({ services: { contract, config } }: Context, { merging, operations }: AnyDefinition, columns: Row) {
  for (const column of Object.keys(merging?.lists ?? {})) {
    if (columns[column] === undefined) continue
    const body = { [column]: JSON.parse(String(columns[column])) as unknown }
    const { errors } = bodyReader(contract, operations.update)(body, { zone: config.timezone, strict: config.strict })
    if (errors[column]) throw invalid({ [`fields.${column}`]: [`The united list is too long. ${errors[column][0]}`] })
  }
}

/** Sets columns of the row without a new version, and what follows from them. */
async function setColumns(ctx: Context, { d, stored }: Parts, id: number, columns: Row): Promise<void> {
  const sets = Object.entries(columns).map(([column, value]) => sql`${sql.ref(column)} = ${value}`)
  if (sets.length > 0) await sql`update ${sql.table(d.table)} set ${sql.join(sets)} where id = ${id}`.execute(ctx.db)
  await d.merging.refresh(ctx, (await stored.read(ctx, id)) as { id: number })
}

/** Keeps the external ids that a record could not give away, so that they find the other record. */
async function keepFormerIds(ctx: Context, parts: Parts, from: number, to: number): Promise<string[]> {
  const at = parts.d.externalIds
  if (at === undefined) return []
  const { rows } = await sql<{ source: string; external_id: string }>`select source, external_id
    from ${sql.table(at.table)} where ${sql.ref(at.column)} = ${from}`.execute(ctx.db)
  for (const { source, external_id } of rows)
    await sql`insert into ${formerIdsOf(parts)} (${ownerOf(parts)}, source, external_id)
      values (${to}, ${source}, ${external_id}) on conflict do nothing`.execute(ctx.db)
  return rows.map(({ external_id }) => external_id)
}

/** Recomputes the keys of moved records. The key of a person's name includes the organization. */
async function refreshKeysOf(ctx: Context, links: readonly Moved[]): Promise<void> {
  for (const { merges, table } of ctx.services.resources.values())
    for (const { ids } of merges ? links.filter((each) => each.table === table) : [])
      for (const part of chunks(ids ?? [])) await merges?.refreshKeys(ctx, part)
}

async function unmerge(ctx: InTransaction, parts: Parts, id: number, other: number) {
  const { d, facts, reader, resource, stored } = parts
  const { entity } = facts
  const { merging, noun, table } = d
  assertCanCall(ctx, operations[d.operations.update])
  await reader.findCurrent(ctx, id)
  const moves = await movesOf(ctx, parts, id, other)
  const conflicts: UnmergeConflict[] = []
  const dropped: object[] = []
  const data = await resource.change(
    ctx,
    id,
    {},
    {
      event: eventOf(parts, 'unmerge'),
      input: { id: other },
      shown: { merged: [[other], []] },
      async first(ctx) {
        const back = giveBack(merging, (await stored.read(ctx, id)) as Row, moves.columns)
        conflicts.push(...back.conflicts.map((field) => ({ type: entity, id, field })))
        const links = await releaseLinks(ctx, moves.links, id)
        conflicts.push(...links.conflicts)
        await amendArchive(ctx, entity, other, (archive) => {
          archive.rows = archive.rows.filter((row, index) => index === 0 || !links.isChanged(row))
        })
        for (const part of chunks(moves.formerIds))
          await sql`delete from ${formerIdsOf(parts)} where external_id in (${sql.join(part)})`.execute(ctx.db)
        await setColumns(ctx, parts, id, back.columns)
        await sql`delete from ${mergesOf(parts)} where merged_id = ${other}`.execute(ctx.db)
        await merging.moveFiles?.(ctx, { from: id, to: other, ids: moves.files })
        const free = { ...ctx, ifMatch: null }
        dropped.push(...(await resource.restore(free, other)).dropped)
        await moveBack(ctx, moves.links, id, other)
        conflicts.push(...((await merging.moveValuesBack?.(ctx, moves.values)) ?? []))
        const naming = new Set((await rulesNaming(ctx, { entity, id })).map((rule) => `${rule.entity} ${rule.id}`))
        for (const rule of moves.rules)
          if (naming.has(`${rule.entity} ${rule.id}`))
            await ctx.services.resources.get(rule.entity)?.replaceNamed?.(free, rule.id, { entity, id }, other)
        await bumpReferrers(ctx, { entity, table, id: other })
      },
    },
  )
  await refreshKeysOf(ctx, moves.links)
  return {
    data,
    message: `${capital(noun)} brought back.`,
    meta: { unmerged_id: other, conflicts: await asSeen(ctx, conflicts), dropped },
  }
}

/**
 * Returns what a merge moved. Throws 422 without such a merge, and 409 when a later one builds on
 * it.
 */
async function movesOf(ctx: Context, parts: Parts, id: number, other: number): Promise<Moves> {
  const { noun } = parts.d
  const { rows } = await sql<{ into_id: number; moves: string }>`select into_id, moves from ${mergesOf(parts)}
    where merged_id = ${other} and ${ownerOf(parts)} = ${id}
    and created_at >= ${daysAfter(ctx.time, -unmergeDays)}`.execute(ctx.db)
  const [found] = rows
  if (!found)
    throw invalid({ id: [`No ${noun} with id ${other} was merged into this one in the last ${unmergeDays} days.`] })
  if (found.into_id !== id) {
    const sentence = `${capital(noun)} ${other} was merged into ${noun} ${found.into_id} before that one was merged into this one. Take the later merge back first.`
    throw new Problem('state_conflict', sentence)
  }
  return JSON.parse(found.moves) as Moves
}

/** Returns the conflicts without the ids of records that the caller may not see. */
async function asSeen(ctx: Context, conflicts: readonly UnmergeConflict[]): Promise<UnmergeConflict[]> {
  const seen = new Map<string, ReadonlySet<number>>()
  for (const type of new Set(conflicts.map((each) => each.type))) {
    const ids = conflicts.flatMap((each) => (each.type === type ? (each.id ?? []) : []))
    seen.set(type, (await ctx.services.resources.get(type)?.visibleIds(ctx, ids)) ?? new Set())
  }
  return conflicts
    .map((each) => ({ ...each, id: seen.get(each.type)?.has(each.id ?? 0) ? each.id : null }))
    .sort((one, two) => (one.type < two.type ? -1 : one.type > two.type ? 1 : (one.id ?? 0) - (two.id ?? 0)))
}
