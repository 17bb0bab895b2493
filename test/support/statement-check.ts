// Checks regularly that a cached statement still equals the statement that its query builds.
import type { Statement, StatementCheck } from '../../db/compiled-queries.ts'

const uses = new WeakMap<Statement, number>()

/** Throws when the SQL or the leading values of a cached statement are outdated. */
export const checkStatement: StatementCheck = async (statement, { name, values, build }) => {
  const used = (uses.get(statement) ?? 0) + 1
  uses.set(statement, used)
  if (used > 3 && used % 16 !== 0) return
  const { sql, parameters } = (await build()).compile()
  const cached = JSON.stringify([statement.query.sql, ...statement.leading, ...values])
  if (JSON.stringify([sql, ...parameters]) !== cached)
    throw new Error(
      `The query "${name}" depends on more than its caller, name and values: ${cached} was cached for ${sql}`,
    )
}
