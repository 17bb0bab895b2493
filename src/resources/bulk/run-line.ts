// Carries out a line in the transaction of its batch, and makes the answer.
import type { SentLine } from '../../contract/input/sent.ts'
import { problemDocument } from '../../contract/output/problems.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { CarriedOut } from '../../kernel/handler.ts'
import { findOneNamed } from '../../kernel/resource/named-references.ts'
import type { AccordEvent } from '../../kernel/write/events.ts'
import { type InTransaction, wholePart } from '../../kernel/write/write.ts'
import { paramsOf, type ReadLine, readBulkLine } from './read-line.ts'

export type Answer = Schema<'BulkAnswer'>

/**
 * Carries out a line, or answers why not. A refused line leaves nothing. Throws an error for which
 * the server is to blame, which ends the batch.
 */
export async function runLine(ctx: InTransaction, line: SentLine): Promise<Answer> {
  try {
    const read = readBulkLine(ctx, line)
    return await wholePart(ctx, (ctx) => carryOut(ctx, line.number, read))
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    return refused(ctx, line.number, error)
  }
}

/** Returns the answer to a line that was not carried out. */
export const refused = ({ baseUrl, path, requestId }: Context, line: number, problem: Problem): Answer => ({
  line,
  status: problem.status,
  problem: problemDocument(problem, { base: baseUrl, path, requestId }) as Schema<'Problem'>,
})

async function carryOut(ctx: InTransaction, number: number, read: ReadLine): Promise<Answer> {
  if (!ctx.sent) throw new Error('A line needs a body of lines.')
  const { operation, body } = read
  const { length } = ctx.unit.after
  const id = read.id ?? (await idOf(ctx, read))
  const done = await ctx.sent.carryOut(ctx, { operation, params: paramsOf(read, id), body })
  return answerOf(number, { ...read, ...(id && { id }) }, done, ctx.unit.after.slice(length))
}

/** Returns the id of the record that a change or deletion names by its external id. */
async function idOf(ctx: Context, { op, type, external_id: externalId }: ReadLine): Promise<number | undefined> {
  if (externalId === undefined || op === 'create' || op === 'upsert') return undefined
  const found = await findOneNamed(ctx, type, { external_id: externalId }, 0)
  if (typeof found === 'number') return found
  throw new Problem('not_found', found ?? undefined)
}

function answerOf(
  line: number,
  read: ReadLine,
  { status, reply, warnings }: CarriedOut,
  events: readonly AccordEvent[],
): Answer {
  const { id = read.id, version } = (reply as { data?: { id?: number; version?: number } } | undefined)?.data ?? {}
  return {
    line,
    status,
    did: didOf(read, id, status, events),
    ...(id !== undefined && { id }),
    ...(typeof version === 'number' && { version }),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  }
}

function didOf(
  { op, type }: ReadLine,
  id: number | undefined,
  status: number,
  events: readonly AccordEvent[],
): Schema<'BulkDid'> {
  const has = (verb: string): boolean =>
    events.some(
      ({ name, entityType, entityId }) => name.endsWith(`.${verb}.after`) && entityType === type && entityId === id,
    )
  if (op === 'delete' && status === 202) return 'deferred'
  if (has('delete')) return 'deleted'
  if (has('create')) return 'created'
  return events.every(({ before, changed }) => before && changed?.length === 0) ? 'unchanged' : 'updated'
}
