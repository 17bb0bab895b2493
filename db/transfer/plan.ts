// Decides which tables are copied and in which order: each table after the tables that it refers
// to.

import type { Kysely } from 'kysely'
import type { ForeignKey } from '../dialect.ts'
import type { DatabaseSnapshot, Store } from '../store.ts'
import type { CheckedTable } from '../table-checksums.ts'
import { progressTable } from './progress.ts'
import { TransferError } from './transfer-error.ts'

export interface PlannedTable extends CheckedTable {
  /**
   * The columns that refer to rows of the same table. They are inserted as null and updated after
   * all rows exist, because a row can refer to a later row.
   */
  readonly late: readonly string[]
}

export interface Plan {
  /** All tables except `migrations`, in the order in which they are copied. */
  readonly tables: readonly PlannedTable[]
  /** The table `migrations`, which is copied last. */
  readonly migrations: CheckedTable
}

/**
 * Every server reads this table at its start. The table stays empty until all other tables are
 * verified, so no server can use an unfinished copy.
 */
const lastTable = 'migrations'

/**
 * Plans the copy. Both databases must have all migrations. Omits tables that only one engine has,
 * because the engine fills them itself.
 */
export async function planTransfer(source: DatabaseSnapshot, from: Store, to: Store): Promise<Plan> {
  const present = await from.dialect.copies.tables(source.db as unknown as Kysely<unknown>)
  const wanted = new Map(
    (await to.dialect.copies.tables(to.db as unknown as Kysely<unknown>)).map((table) => [table.name, table]),
  )
  const { foreignKeys } = await to.dialect.relations(to.db as unknown as Kysely<unknown>)
  const tables = present.flatMap((table) => {
    const other = wanted.get(table.name)
    if (other === undefined || table.name === progressTable) return []
    if (other.columns.join() !== table.columns.join())
      throw new TransferError(`The table ${table.name} has other columns in the target than in the source.`)
    const late = foreignKeys.filter((key) => key.table === table.name && key.parent === table.name)
    return [{ ...table, json: [...new Set([...table.json, ...other.json])], late: late.map(({ column }) => column) }]
  })
  const migrations = tables.find(({ name }) => name === lastTable)
  if (migrations === undefined) throw new TransferError('The source is not a database of Accord CRM.')
  return { tables: inOrder(tables, foreignKeys).filter((table) => table !== migrations), migrations }
}

/** Returns the tables so that each table follows the tables that it refers to. */
function inOrder<Table extends PlannedTable>(tables: readonly Table[], keys: readonly ForeignKey[]): Table[] {
  const ordered: Table[] = []
  let waiting = [...tables]
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name))
    const isReady = ({ name }: Table): boolean =>
      keys.every((key) => key.table !== name || key.parent === name || !names.has(key.parent))
    const ready = waiting.filter(isReady)
    // A test of the transfer fails when a migration creates such a cycle.
    if (ready.length === 0) throw new Error(`These tables refer to each other in a circle: ${[...names].join(', ')}.`)
    ordered.push(...ready)
    waiting = waiting.filter((table) => !ready.includes(table))
  }
  return ordered
}
