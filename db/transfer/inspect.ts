// Reads all rows of the source before the target is changed. Computes the checksums for the final
// check and finds texts that the target cannot store.

import type { Dialect } from '../dialect.ts'
import type { DatabaseSnapshot } from '../store.ts'
import { type CheckedTable, type TableChecksum, valueChecksum } from '../table-checksums.ts'
import { TransferError } from './transfer-error.ts'

/** The maximum number of problems that the error lists. */
const maxListed = 20

/**
 * Returns the checksums by table name. Throws TransferError when the target cannot store a text.
 * `tell` is called after each table.
 */
export async function inspect(
  source: DatabaseSnapshot,
  tables: readonly CheckedTable[],
  dialect: Dialect,
  tell: () => void,
): Promise<Map<string, TableChecksum>> {
  const found = new Map<string, TableChecksum>()
  const problems: string[] = []
  let count = 0
  for (const table of tables) {
    const checksum = await valueChecksum(source, table, (row) => {
      for (const column of table.columns) {
        const problem = problemOf(row[column], table.json.includes(column), dialect)
        if (problem === null) continue
        count++
        const key = table.key.map((each) => `${each} ${String(row[each])}`).join(', ')
        if (problems.length < maxListed)
          problems.push(`The column ${column} of the table ${table.name} contains ${problem} in the row with ${key}.`)
      }
    })
    found.set(table.name, checksum)
    tell()
  }
  if (count === 0) return found
  const more = count > problems.length ? [`There are ${count - problems.length} more such texts.`] : []
  const remedy = 'Nothing was copied. Change these texts, then run the command again.'
  throw new TransferError(['The target cannot store some texts.', ...problems, ...more, remedy].join('\n'))
}

/** Matches JSON escapes of U+0000 and of surrogates, which an engine may be unable to store. */
const escaped = /\\u(0000|d[89a-f])/i

function problemOf(value: unknown, isJson: boolean, dialect: Dialect): string | null {
  if (typeof value !== 'string') return null
  const problem = dialect.textProblem(value)
  return problem === null && isJson && escaped.test(value) ? jsonProblem(JSON.parse(value), dialect) : problem
}

function jsonProblem(value: unknown, dialect: Dialect): string | null {
  if (typeof value === 'string') return dialect.textProblem(value)
  if (typeof value !== 'object' || value === null) return null
  for (const [name, each] of Object.entries(value)) {
    const problem = dialect.textProblem(name) ?? jsonProblem(each, dialect)
    if (problem !== null) return problem
  }
  return null
}
