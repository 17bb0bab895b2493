// Reads a row and validates it against the schema of its operation, before any database query.
import type { Context } from '../../../kernel/context.ts'
import {
  bodyOf,
  type CellReading,
  operationOf,
  parseRow,
  type RowDraft,
  validBodyOf,
} from '../draft-rows/row-drafts.ts'
import { laterMatchKeys, matchKeysOf } from '../find-records/match-records.ts'
import type { SheetRow } from '../read-file/read-rows.ts'
import type { ImportPlan } from '../settings.ts'

/** A parsed row, before any database query. */
export interface ImportLine {
  draft: RowDraft
  /** Returns the validated row. Throws `ImportStop` for an invalid row. */
  reading: () => RowReading
  without: (headers: ReadonlySet<string>) => ImportLine
}

export function readLine(
  ctx: Context,
  plan: ImportPlan,
  row: SheetRow,
  cells: CellReading,
  omitted?: ReadonlySet<string>,
  named?: RowDraft['named'],
): ImportLine {
  const draft = parseRow(row, cells, omitted, named)
  const without = (headers: ReadonlySet<string>): ImportLine => readLine(ctx, plan, row, cells, headers, draft.named)
  let reading: ImportLine['reading']
  try {
    const read = readRow(ctx, plan, draft)
    reading = () => read
  } catch (error) {
    reading = () => {
      throw error
    }
  }
  return { draft, without, reading }
}

/** A validated row. */
export interface RowReading {
  /** The match keys of the row, which find the record to change. */
  keys: readonly string[]
  /** The keys by which later rows can match the record of this row. */
  made: readonly string[]
  /** The body of the create operation if the row can only create a record; null otherwise. */
  body: object | null
}

/** Validates a row against the schema of its operation. Throws `ImportStop`. */
function readRow(ctx: Context, { type, action }: ImportPlan, draft: RowDraft): RowReading {
  // A lead without an id of either kind is always created. If the create body is invalid, the code
  // below validates the row as an update, which reports the errors.
  const hasId = (draft.id ?? draft.body.external_ids ?? null) !== null
  if (type === 'leads' && action === 'append' && !hasId) {
    const body = validBodyOf(ctx, draft, operationOf(type, 'create'))
    if (body) return { keys: [], made: [], body }
  }
  const body = bodyOf(ctx, draft, operationOf(type, 'update'))
  const keys = matchKeysOf(ctx, { type, action }, draft, body)
  return { keys, made: laterMatchKeys(ctx, type, keys, body), body: null }
}
