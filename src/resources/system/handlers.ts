// Health of the process and readiness for requests (DOMAIN 26). The documentation and the contract itself are served by
// docs.ts.
import { sql } from 'kysely'
import { Problem } from '../../kernel/errors.ts'
import type { HandlersFor } from '../../kernel/handler.ts'
import { version } from '../../package.ts'

export const handlers: HandlersFor<'getHealth' | 'getReadiness'> = {
  getHealth: async () => ({ status: 'ok', version }),

  getReadiness: async (ctx) => {
    try {
      await sql`select 1`.execute(ctx.db)
    } catch (cause) {
      throw new Problem('unavailable', 'The database does not answer.', { cause, headers: { 'retry-after': '5' } })
    }
    // Requests are answered as well without a current manual, so this is told but keeps nobody away.
    return { status: 'ready', checks: { database: 'ok', documentation: ctx.services.readiness() } }
  },
}
