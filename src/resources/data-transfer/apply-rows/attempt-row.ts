// Applies a row. A refused row gets all its errors, not only the first one. With `omitsCells`, the
// row is applied again without its invalid optional cells.
import { assertCanCall, type Context } from '../../../kernel/context.ts'
import { type InTransaction, savepoint } from '../../../kernel/write/write.ts'
import {
  operationOf,
  type RowDraft,
  readRowBody,
  rowErrors,
  schemaErrors,
  toRowErrors,
} from '../draft-rows/row-drafts.ts'
import { omittedCode, type ReportedRow, type RowError, stops } from '../errors.ts'
import type { Lookups } from '../find-records/lookups.ts'
import { findRecord, matchKeysOf } from '../find-records/match-records.ts'
import { checkNames, unknownCode, withoutOpenClosing } from '../find-records/references.ts'
import { keyColumns } from '../map-columns/columns.ts'
import type { ImportPlan } from '../settings.ts'
import { importedResource, validTagName } from './apply-row.ts'
import type { ImportLine } from './read-row.ts'

/**
 * Applies a row in a savepoint, so that a refused row rolls back alone. Returns null for a row
 * without errors, otherwise the row with its errors.
 */
export async function attemptRow<C extends InTransaction>(
  ctx: C,
  plan: ImportPlan,
  line: ImportLine,
  known: Lookups,
  apply: (ctx: C, line: ImportLine, known: Lookups) => Promise<void>,
): Promise<ReportedRow | null> {
  const { cells } = line.draft
  const reported: RowError[] = [...line.draft.omissions]
  const omitted = new Set(reported.flatMap(({ column }) => column ?? []))
  // Each round leaves out at least one more cell, so the loop ends.
  for (let left = line; ; left = line.without(omitted)) {
    const errors = await errorsOf(ctx, plan, left, known, apply)
    if (errors === null && reported.length === 0) return null
    if (errors === null)
      return { cells, errors: reported.map((error) => ({ ...error, code: omittedCode })), isImported: true }
    // Omitting the cell of a required field causes a second error, that the field is missing. Only
    // the error of the cell itself is reported.
    const news = errors.filter(({ column }) => column === null || !omitted.has(column))
    reported.push(...news)
    const headers = news.length === errors.length ? omittable(plan, left.draft, news) : null
    if (headers === null) return { cells, errors: reported, isImported: false }
    for (const header of headers) omitted.add(header)
  }
}

/** Applies the row. Returns all its errors, or null when the row is applied. */
async function errorsOf<C extends InTransaction>(
  ctx: C,
  plan: ImportPlan,
  line: ImportLine,
  known: Lookups,
  apply: (ctx: C, line: ImportLine, known: Lookups) => Promise<void>,
): Promise<RowError[] | null> {
  try {
    await savepoint(ctx, () => apply(ctx, line, known))
    return null
  } catch (error) {
    const errors = [...toRowErrors(line.draft, error)]
    // The row is read again without the unknown names, which may cause further errors of rules.
    if (plan.unknown !== 'refuse' && errors.some(({ code }) => code === unknownCode)) {
      const names = checkNames(plan, line.draft, known).errors
      return names.filter(({ code }) => code === unknownCode)
    }
    // A `Problem` comes from the rules of the resource and lists all errors. An `ImportStop` is
    // thrown before the rules run, so the rules are checked here.
    const more = stops(error, 'row') ? await furtherErrors(ctx, plan, line.draft, known) : []
    const isNew = ({ column, message }: RowError): boolean =>
      !errors.some((each) => each.column === column && each.message === message)
    return [...errors, ...more.filter(isNew)]
  }
}

/**
 * Returns the errors of the schema and of the rules for a row that was refused before the rules
 * ran.
 */
async function furtherErrors(ctx: Context, plan: ImportPlan, draft: RowDraft, known: Lookups): Promise<RowError[]> {
  const { type, action } = plan
  if (action === 'delete') return []
  try {
    const id = await recordOf(ctx, plan, draft)
    const operation = operationOf(type, id === null ? 'create' : 'update')
    assertCanCall(ctx, operation)
    const related = checkNames(plan, draft, known)
    const { person: _new, ...ids } = related.found
    const body = withoutOpenClosing({ ...draft.body, ...ids }, draft, known) as RowDraft['body']
    const { errors, validPart } = readRowBody(ctx, { ...draft, body }, operation)
    const refused = draft.errors.flatMap(({ column }) => fieldOf(draft, column))
    const part = validPart(refused)
    const found = schemaErrors(draft, errors)
    found.push(...related.errors, ...tagErrors(ctx, draft))
    const examine = importedResource(ctx, type).examiners[operation]
    if (!part || !examine) return found
    const fields = [...Object.keys(errors), ...refused]
    const broken = await examine(ctx, { params: { id }, body: part.body }, fields)
    return [...found, ...rowErrors(draft, part.news(broken))]
  } catch (error) {
    return [...toRowErrors(draft, error)]
  }
}

/**
 * Returns the id of the record that the row changes, or null for a new record. A row with an
 * invalid key is checked like a new record.
 */
async function recordOf(ctx: Context, plan: ImportPlan, draft: RowDraft): Promise<number | null> {
  const { value, errors } = readRowBody(ctx, draft, operationOf(plan.type, 'update'))
  const isInvalid = keyFields(plan, draft).some((key) => Object.keys(errors).some((field) => isWithin(field, key)))
  if (isInvalid) return null
  return findRecord(ctx, plan, draft, matchKeysOf(ctx, plan, draft, value))
}

const isWithin = (field: string, key: string): boolean => `${field}.`.startsWith(`${key}.`)

function tagErrors(ctx: Context, draft: RowDraft): RowError[] {
  return (draft.tags ?? []).flatMap((name) => {
    try {
      validTagName(ctx, draft, name)
      return []
    } catch (error) {
      return toRowErrors(draft, error)
    }
  })
}

const fieldOf = ({ columns }: RowDraft, header: string | null): string[] =>
  columns.flatMap((column) => (column.header === header ? column.path.join('.') : []))

function keyFields({ type, action }: ImportPlan, { body }: RowDraft): string[] {
  const hasEmail = Array.isArray(body.emails) && body.emails.length > 0
  if (type === 'persons' && action === 'append' && !hasEmail) return ['emails', 'contact_numbers', 'name']
  return type === 'leads' ? ['id'] : [keyColumns[type][action]]
}

/**
 * Returns the headers of the cells to leave out, or null when the row must be refused. A cell is
 * never left out when it identifies the record or must be unique. Unknown names have a setting of
 * their own.
 */
function omittable(plan: ImportPlan, draft: RowDraft, errors: readonly RowError[]): string[] | null {
  const keys = keyFields(plan, draft)
  const headers = new Set<string>()
  for (const { column: header, code } of errors) {
    const columns = draft.columns.filter((each) => each.header === header)
    const isKey = columns.length === 0 || columns.some(({ name, isUnique }) => isUnique === true || keys.includes(name))
    const isAllowed = code === unknownCode ? plan.unknown !== 'refuse' : plan.omitsCells && code === 'validation_failed'
    if (isKey || !isAllowed || plan.action === 'delete') return null
    headers.add(header ?? '')
  }
  return [...headers]
}
