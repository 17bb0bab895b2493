// Replaces the texts that name a person in stored texts and JSON.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../../../kernel/context.ts'
import { chunks, primaryKey, type Row, relationsOf } from '../../../kernel/history/archive.ts'
import { yieldToEventLoop } from '../../../kernel/runtime/cooperative.ts'
import { escapeHtml } from '../../../kernel/values/format.ts'
import { columnsOf, type PersonalTable } from './personal-data.ts'

const mark = '[erased]'

export interface Redaction {
  /** Returns the text without the names. */
  text(value: string): string
  /** Returns the SQL condition that a column may have one of the names. */
  in(column: string): RawBuilder<SqlBool>
}

/** Returns a redaction of the names; null without names. A name is replaced only as a whole. */
export function redactionOf(names: readonly string[]): Redaction | null {
  const forms = [
    ...new Set(
      names.flatMap((name) => [name, escapeHtml(name), encodeURIComponent(name), JSON.stringify(name).slice(1, -1)]),
    ),
  ].sort((one, other) => other.length - one.length)
  if (forms.length === 0) return null
  const any = forms.map((form) => form.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|')
  // A letter after a backslash is the end of an escape sequence of JSON, such as `\n`.
  const pattern = new RegExp(`(?<!(?<!\\\\)[\\p{L}\\p{N}._-])(?:${any})(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`, 'giu')
  const patterns = [...new Set(forms.flatMap((form) => [form, form.toLowerCase()]))].map(
    (form) => `%${form.replaceAll(/[\\%_]/g, '\\$&')}%`,
  )
  return {
    text: (value) => value.replace(pattern, mark),
    in(column) {
      const text = sql`lower(cast(${sql.ref(column)} as text))`
      const raw = sql`cast(${sql.ref(column)} as text)`
      const matches = patterns.flatMap((each) => [
        sql`${text} like ${each} escape '\\'`,
        sql`${raw} like ${each} escape '\\'`,
      ])
      return sql<SqlBool>`(${sql.join(matches, sql` or `)})`
    },
  }
}

/**
 * Replaces the names in the rows of a table, or does with them what the table says for rows that
 * name a person. `within` restricts the rows. Returns the number of changed rows.
 */
export async function redactTable(
  ctx: Context,
  table: string,
  rules: PersonalTable,
  redaction: Redaction,
  within: RawBuilder<SqlBool> | null,
): Promise<number> {
  const texts = columnsOf(rules.texts)
  if (texts.length === 0) return 0
  const key = primaryKey(await relationsOf(ctx), table)
  const named = sql`(${sql.join(texts.map(redaction.in), sql` or `)})`
  const columns = sql.join([...new Set([...key, ...texts])].map((column) => sql.ref(column)))
  const where = within === null ? named : sql`${within} and ${named}`
  const { rows } = await sql<Row>`select ${columns} from ${sql.table(table)} where ${where}`.execute(ctx.db)
  let changed = 0
  for (const part of chunks(rows, 100)) {
    for (const row of part) {
      const changes = Object.fromEntries(
        texts.flatMap((column) => {
          const value = row[column]
          const clean = typeof value === 'string' ? redaction.text(value) : value
          return clean === value ? [] : [[column, clean]]
        }),
      )
      if (Object.keys(changes).length === 0) continue
      changed += 1
      const at = sql.join(
        key.map((column) => sql`${sql.ref(column)} = ${row[column]}`),
        sql` and `,
      )
      if (rules.named === 'delete') await sql`delete from ${sql.table(table)} where ${at}`.execute(ctx.db)
      else await setColumns(ctx, table, rules.named ?? changes, at)
    }
    await yieldToEventLoop()
  }
  return changed
}

/** Sets columns of the rows. Returns the number of rows. */
export async function setColumns(
  { db }: Context,
  table: string,
  values: Readonly<Record<string, unknown>>,
  where: RawBuilder<unknown>,
): Promise<number> {
  if (Object.keys(values).length === 0) return 0
  const sets = Object.entries(values).map(([column, value]) => sql`${sql.ref(column)} = ${value}`)
  const done = await sql`update ${sql.table(table)} set ${sql.join(sets)} where ${where}`.execute(db)
  return Number(done.numAffectedRows ?? 0)
}

/** Returns a snapshot with only its numbers, flags and times. Texts and nested records are gone. */
export function onlyFacts(stored: string | null): string | null {
  if (stored === null) return null
  const kept = Object.entries(JSON.parse(stored) as Record<string, unknown>).filter(
    ([, value]) =>
      value === null ||
      typeof value === 'number' ||
      typeof value === 'boolean' ||
      (typeof value === 'string' && /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(value)),
  )
  return JSON.stringify(Object.fromEntries(kept))
}
