// Draws documents and charts in a subprocess (offload.ts). Converts errors of the subprocess to
// problems.
import { type Context, requireUser } from '../context.ts'
import { Problem } from '../errors.ts'
import { OffloadError, type Program } from '../runtime/offload.ts'

/**
 * Runs a drawing program for the signed-in caller. Throws 429 when too many drawings of the caller
 * are waiting, and 503 when too many drawings of all callers are waiting.
 */
export async function draw<Input, Result>(
  ctx: Context,
  program: Program<Input, Result>,
  input: Input,
): Promise<Result> {
  try {
    return await ctx.services.offload.run(program, input, requireUser(ctx).id)
  } catch (error) {
    throw error instanceof OffloadError ? problemOf(error) : error
  }
}

function problemOf(cause: OffloadError): Problem {
  switch (cause.reason) {
    case 'caller_busy':
      return new Problem(
        'rate_limited',
        'Earlier documents or charts of yours are still waiting to be drawn.',
        after(5),
      )
    case 'queue_full':
    case 'waited_too_long':
      return new Problem('unavailable', 'Too many documents and charts are waiting to be drawn.', after(10))
    case 'closed':
      return new Problem('unavailable', 'The server is closing.', after(1))
    default:
      return new Problem('unavailable', 'It took too much time or memory to draw.', { ...after(30), cause })
  }
}

const after = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } })
