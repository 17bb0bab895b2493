// Carries out the lines of a batch in one transaction, with their stored answers.
import type { SentLine } from '../../contract/input/sent.ts'
import { renewed } from '../../kernel/auth/sessions.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { toUnavailableProblem } from '../../kernel/runtime/unavailable.ts'
import type { OwnKey } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import type { LineReader } from './line-reader.ts'
import { type Answer, refused, runLine } from './run-line.ts'
import { storeAnswers } from './stored-answers.ts'

export interface Run {
  ctx: Context
  reader: LineReader
  key: OwnKey | null
  stopsOnRefusal: boolean
}

interface Batch {
  answers: Answer[]
  /** Whether no further line is carried out. */
  isLast: boolean
}

/**
 * Carries out lines, of which `position` lines were answered before. If a line fails by a fault of
 * the server, each line gets a transaction of its own, so that the others are kept.
 */
export async function runBatch(run: Run, position: number, lines: readonly SentLine[]): Promise<Batch> {
  try {
    return await attempt(run, position, lines)
  } catch (error) {
    const problem = problemOf(run.ctx, error)
    const isOver = problem.code !== 'internal_error' || run.ctx.dryRun
    if (isOver || lines.length === 1) {
      const answers = [refused(run.ctx, lines[0]?.number ?? 1, problem)]
      return { answers, isLast: isOver || run.stopsOnRefusal }
    }
  }
  const answers: Answer[] = []
  for (const [index, line] of lines.entries()) {
    const batch = await runBatch(run, position + index, [line])
    answers.push(...batch.answers)
    if (batch.isLast) return { answers, isLast: true }
  }
  return { answers, isLast: false }
}

async function attempt(
  { ctx, key, stopsOnRefusal }: Run,
  position: number,
  lines: readonly SentLine[],
): Promise<Batch> {
  // A token may be revoked and rights may change while the client sends.
  const acting = await renewed(ctx, 'bulkWrite')
  if (acting === undefined) throw new Problem('unauthenticated')
  return transaction(
    acting,
    async (inner) => {
      const answers: Answer[] = []
      let isLast = false
      for (const line of lines) {
        await yieldIfDue()
        const answer = await runLine(inner, line)
        answers.push(answer)
        isLast = stopsOnRefusal && answer.problem !== undefined
        if (isLast) break
      }
      if (key) await storeAnswers(inner, key, { position, lines: lines.slice(0, answers.length), answers })
      return { answers, isLast }
    },
    { isLong: true, inParts: true },
  )
}

/** Returns the problem of an error that ended a batch. Logs an error of this program. */
export function problemOf({ services }: Pick<Context, 'services'>, error: unknown): Problem {
  const problem =
    error instanceof Problem
      ? error
      : (toUnavailableProblem(error) ?? new Problem('internal_error', undefined, { cause: error }))
  if (problem.code === 'internal_error')
    services.log.error({ err: problem.more.cause ?? problem, code: problem.code }, 'A line of a bulk write failed.')
  return problem
}
