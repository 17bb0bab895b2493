// Simulates servers that are only compatible with PostgreSQL. With `ACCORD_TEST_HOSTILE=on`, the
// first attempt of each transaction fails at its commit, and ids grow in steps. LISTEN and advisory
// locks are refused in every run.
import type { Pool, PoolClient } from 'pg'
import type { Pools } from '../../db/postgres/connection.ts'

export const isHostile = process.env.ACCORD_TEST_HOSTILE === 'on'

/** The difference between consecutive ids. */
export const idStep = 7

export class SerializationFailure extends Error {
  readonly code = '40001'
  readonly severity = 'ERROR'

  constructor() {
    super('could not serialize access')
  }
}

/** The value for `PostgresOptions.beforeCommit`. */
export function failFirstAttempt(attempt: number): void {
  if (attempt === 0) throw new SerializationFailure()
}

/** The statement that makes all sequences of a database grow by `idStep`. */
export const stepSequences = `do $$
declare each record; begin
  for each in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S' loop
    execute format('alter sequence public.%I increment by ${idStep}', each.relname);
  end loop;
end $$`

const refused = /(^|;)\s*((un)?listen|notify)\b|\bpg_notify\b|\bpg_(try_)?advisory/i

/** Makes connections throw for statements that poolers and distributed servers do not support. */
export function refuseUnportable(pools: Pools): Pools {
  for (const pool of [pools.read, pools.write]) guardPool(pool)
  return {
    ...pools,
    connect: async () => {
      const client = await pools.connect()
      guard(client)
      return client
    },
  }
}

const guardPool = (pool: Pool): unknown => pool.on('connect', guard)

function guard(client: PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((first: unknown, ...rest: unknown[]) => {
    const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '')
    // Literals are removed, because they may contain any word.
    if (refused.test(text.replaceAll(/'[^']*'/g, "''"))) throw new Error(`This statement is not portable: ${text}`)
    return query(first, ...rest)
  }) as typeof client.query
}
