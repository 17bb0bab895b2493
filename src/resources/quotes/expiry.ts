// Marks the sent quotes whose last day of validity has passed as expired, after each midnight of
// the installation's time zone.
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { Problem } from '../../kernel/errors.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { quotes } from './resource.ts'
import { todayOf } from './status.ts'

const atOnce = 100

export const expireQuotes = defineJob<{ due: string }>({
  kind: 'quotes.expire',
  async run(ctx, _payload, { signal }) {
    const due = ctx.db.selectFrom('quotes').select('id').where('status', '=', 'sent')
    for (let after = 0, isDone = false; !isDone && !signal.aborted; await yieldToEventLoop()) {
      const passed = due.where('expiry_date', '<', todayOf(ctx)).where('id', '>', after)
      const rows = await passed.orderBy('id').limit(atOnce).execute()
      for (const { id } of rows) {
        try {
          await quotes.update(ctx, id, { status: 'expired' })
        } catch (error) {
          // The quote was answered or deleted meanwhile, or a listener refused the change.
          if (!(error instanceof Problem) || error.status >= 500) throw error
          ctx.services.log.warn(
            { quote: id, problem: error.code },
            'A quote stays sent after its last day of validity.',
          )
        }
      }
      after = rows.at(-1)?.id ?? after
      isDone = rows.length < atOnce
    }
  },
})

export const schedules: readonly Schedule[] = [{ name: 'quotes:expire', at: '00:00', job: expireQuotes }]
