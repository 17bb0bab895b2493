// Mass operations run a single-record operation for many records. Each record gets a
// transaction; with `atomic`, all records share one. With an Idempotency-Key, each transaction also
// stores the ids of finished records, so that a repeated request continues after a crash.

import { operations } from '../../contract/operations.gen.ts'
import type { Failure } from '../../contract/output/problems.ts'
import type { Reply } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { invalid, Problem } from '../errors.ts'
import { inSteps } from '../write/idempotency.ts'
import { transaction } from '../write/write.ts'
import type { Resource } from './define-resource.ts'

type MassReply = Reply<'massDeleteLeads'>

interface Work {
  noun: { one: string; many: string }
  verb: string
  ids: readonly number[]
  atomic?: boolean | undefined
  /** Handles one record inside a transaction. */
  each: (ctx: Context, id: number) => Promise<unknown>
  /**
   * Whether handling one record may take long. Other writers then do not wait for its commit
   * (`transaction`).
   */
  isLong?: boolean
}

/** Thrown to roll back an atomic operation. The list of failures already contains the failure. */
class Refused extends Error {}

const failureOf = (id: number, { status, code, message, more }: Problem): Failure => ({
  id,
  status,
  code,
  detail: Object.values(more.errors ?? {}).flat()[0] ?? message,
})

interface Progress {
  processed: number[]
  failed: Failure[]
}

/**
 * Returns the records that an earlier attempt of the same request has already handled
 * (idempotency.ts).
 */
function begun({ keyed }: Context): Progress {
  const { processed, failed } = (keyed?.progress ?? { processed: [], failed: [] }) as Progress
  return { processed: [...processed], failed: [...failed] }
}

/**
 * Runs the work for each record and returns the handled and the failed records. Throws 422
 * `mass_failed` when no record was handled.
 */
export async function inMass(ctx: Context, work: Work): Promise<MassReply> {
  const { processed, failed } = begun(ctx)
  const known = new Set([...processed, ...failed.map(({ id }) => id)])
  const ids = [...new Set(work.ids)].filter((id) => !known.has(id))
  const attempt = async (id: number, each: () => Promise<unknown>): Promise<void> => {
    try {
      await each()
      processed.push(id)
    } catch (error) {
      // `idempotency_in_flight` means that another request has taken over the Idempotency-Key and
      // handles the remaining records.
      if (!(error instanceof Problem) || error.status >= 500 || error.code === 'idempotency_in_flight') throw error
      failed.push(failureOf(id, error))
      if (work.atomic) throw new Refused('an atomic mass operation failed')
    }
  }
  // If-Match names the version of a single record, so it does not apply to a mass operation.
  const plain: Context = { ...ctx, ifMatch: null }
  if (work.atomic) {
    try {
      const before = [processed.length, failed.length] as const
      await transaction(plain, async (inner) => {
        // The transaction may run again after a conflict, and then handles the same records again.
        ;[processed.length, failed.length] = before
        for (const id of ids) await attempt(id, () => work.each(inner, id))
        await ctx.keyed?.save(inner, { processed, failed })
      })
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      processed.length = 0
    }
  } else {
    const { isLong = false } = work
    for (const id of ids)
      await attempt(id, () =>
        transaction(
          plain,
          async (inner) => {
            await work.each(inner, id)
            await ctx.keyed?.save(inner, { processed: [...processed, id], failed })
          },
          { isLong },
        ),
      )
  }
  const { one, many } = work.noun
  if (processed.length === 0) throw new Problem('mass_failed', unknownIds(ctx, one, failed), { failed })
  return {
    data: { processed, failed },
    message: `${processed.length} ${processed.length === 1 ? one : many} ${work.verb}.`,
  }
}

/**
 * Returns the detail of a refusal in which no record exists: the ids may be of another type.
 * Returns undefined for other refusals.
 */
function unknownIds({ operation }: Context, noun: string, failed: readonly Failure[]): string | undefined {
  const isUnknown = failed.length > 0 && failed.every(({ code }) => code === 'not_found')
  if (!isUnknown) return undefined
  const ids = failed.slice(0, maxListed).map(({ id }) => id)
  const more = failed.length > ids.length ? `, nor ${failed.length - ids.length} more` : ''
  const list = operation === null ? '' : ` GET ${operations[operation].path.replace(/\/mass-\w+$/, '')} lists the ids.`
  return `None of the records was changed: you can see no ${noun} with the ids ${ids.join(', ')}${more}.${list}`
}

/** The maximum number of unknown ids in a sentence. */
const maxListed = 5

/**
 * Returns the handler that deletes many records of a resource. `defer` returns the id of a job that
 * deletes the record later, or null when the record can be deleted at once.
 */
export const massDelete = (
  resource: Pick<Resource<unknown, unknown>, 'noun' | 'entity' | 'remove'>,
  { isLong = false, defer }: { isLong?: boolean; defer?: (ctx: Context, id: number) => Promise<number | null> } = {},
) =>
  inSteps(
    (ctx: Context, { body }: { body: { ids: number[] } }): Promise<MassReply> =>
      inMass(ctx, {
        noun: { one: resource.noun, many: resource.entity },
        verb: 'deleted',
        ids: body.ids,
        isLong,
        each: async (inner, id) => (await defer?.(inner, id)) ?? (await resource.remove(inner, id)),
      }),
  )

/** Throws 422 unless exactly one of `value` and `changes` was sent. */
function oneOf<B extends { value?: unknown; changes?: unknown }>(body: B): B {
  if ((body.value === undefined) === (body.changes === undefined))
    throw invalid({ value: ['Send either value or changes.'] })
  return body
}

/**
 * Returns the handler that updates many records of a resource. `changes` in the body is an ordinary
 * update of each record; `byValue` applies the property `value`.
 */
export const massUpdate = <W, V = never>(
  resource: Pick<Resource<unknown, W>, 'noun' | 'entity' | 'update'>,
  byValue?: (ctx: Context, id: number, value: V) => Promise<unknown>,
) =>
  inSteps(
    (
      ctx: Context,
      { body }: { body: { ids: number[]; value?: V; changes?: W; atomic?: boolean } },
    ): Promise<MassReply> => {
      const { ids, atomic, value, changes } = oneOf(body)
      return inMass(ctx, {
        noun: { one: resource.noun, many: resource.entity },
        verb: 'updated',
        ids,
        atomic,
        each: async (ctx, id) =>
          changes === undefined ? byValue?.(ctx, id, value as V) : resource.update(ctx, id, changes),
      })
    },
  )
