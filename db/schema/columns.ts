// The building blocks of migrations: kinds of columns and `createTable`. The dialect defines the
// types and checks, so one migration runs on every engine, and rows look the same on each.

import { type ColumnDefinitionBuilder, type CreateTableBuilder, type Kysely, sql } from 'kysely'
import type { ColumnKind, Dialect } from '../dialect.ts'

type OnDelete = 'cascade' | 'restrict' | 'set null'

export interface Column {
  readonly kind: ColumnKind
  readonly isNullable?: boolean
  readonly initial?: string | number | boolean
  readonly check?: (column: string) => string
  readonly reference?: { readonly table: string; readonly onDelete: OnDelete }
}

export interface Index {
  readonly columns: readonly string[]
  readonly isUnique?: boolean
  /** The name of a flag column. The index covers only rows in which this flag is set. */
  readonly whenTrue?: string
}

export interface TableOptions {
  /** The primary key of a table without `id: id()`, such as a link table. */
  readonly primaryKey?: readonly string[]
  readonly unique?: readonly (readonly string[])[]
  readonly indexes?: readonly (readonly string[])[]
  readonly partial?: readonly Index[]
  readonly checks?: Readonly<Record<string, string>>
}

export const id = (): Column => ({ kind: 'id' })
export const text = (initial?: string): Column => withInitial('text', initial)
export const integer = (initial?: number): Column => withInitial('integer', initial)
/** A decimal number with four places, stored as an integer scaled by 10^4. */
export const money = (initial?: number): Column => withInitial('money', initial)
export const flag = (initial?: boolean): Column => withInitial('flag', initial)
/** A column with JSON as text. `initial` is the default as text, such as '{}'. */
export const json = (initial?: string): Column => withInitial('json', initial)
/** A date as text: `YYYY-MM-DD`. */
export const date = (): Column => ({ kind: 'date' })
/** A UTC timestamp as text: `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const timestamp = (): Column => ({ kind: 'timestamp' })
/**
 * A column with `textKey` of a text column, such as `name_key` for `name`, or with `caseFold` of an
 * address. Used for sorting, matching and uniqueness (search-folding.ts, case-folding.ts).
 */
export const key = (): Column => ({ kind: 'text' })

export const version = (): Record<'version', Column> => ({ version: integer(1) })
export const timestamps = (): Record<'created_at' | 'updated_at', Column> => ({
  created_at: timestamp(),
  updated_at: timestamp(),
})

export const nullable = (column: Column): Column => ({ ...column, isNullable: true })

export function range(minimum: number, maximum: number, initial?: number): Column {
  return { ...integer(initial), check: (column) => `${column} between ${minimum} and ${maximum}` }
}

export function oneOf(values: readonly string[], initial?: string): Column {
  return { ...text(initial), check: (column) => `${column} in (${values.map(quoted).join(', ')})` }
}

/**
 * Returns a foreign key to `<table>.id`, which `createTable` indexes. With `set null` the column is
 * nullable.
 */
export function references(table: string, onDelete: OnDelete): Column {
  return { kind: 'integer', isNullable: onDelete === 'set null', reference: { table, onDelete } }
}

/** The indexes for the columns that every list of records sorts and filters by. */
export const listed: readonly (readonly string[])[] = [
  ['created_at', 'id'],
  ['updated_at', 'id'],
]

export async function createTable(
  db: Kysely<unknown>,
  dialect: Dialect,
  name: string,
  columns: Readonly<Record<string, Column>>,
  options: TableOptions = {},
): Promise<void> {
  let table: CreateTableBuilder<string, string> = db.schema.createTable(name)
  for (const [columnName, column] of Object.entries(columns)) {
    const type = sql.raw(dialect.columnType(column.kind))
    table = table.addColumn(columnName, type, (builder) => defineColumn(builder, dialect, columnName, column))
  }
  if (options.primaryKey) table = table.addPrimaryKeyConstraint(`${name}_primary`, [...options.primaryKey])
  for (const [check, condition] of Object.entries(options.checks ?? {})) {
    table = table.addCheckConstraint(`${name}_${check}`, sql.raw(condition))
  }
  if (dialect.tableOptions !== '') table = table.modifyEnd(sql.raw(dialect.tableOptions))
  await table.execute()

  const indexes: Index[] = [
    ...(options.unique ?? []).map((indexed) => ({ columns: indexed, isUnique: true })),
    ...(options.indexes ?? []).map((indexed) => ({ columns: indexed })),
    ...(options.partial ?? []),
  ]
  const leading = new Set([
    options.primaryKey?.[0],
    ...indexes.filter((index) => !index.whenTrue).map((index) => index.columns[0]),
  ])
  for (const [columnName, column] of Object.entries(columns)) {
    if (column.reference && !leading.has(columnName)) indexes.push({ columns: [columnName] })
  }
  for (const index of indexes) await createIndex(db, dialect, name, index)
}

/**
 * Adds a column to a table that may have rows, so the column must be nullable or have a default.
 */
export async function addColumn(
  db: Kysely<unknown>,
  dialect: Dialect,
  table: string,
  name: string,
  column: Column,
): Promise<void> {
  const type = sql.raw(dialect.columnType(column.kind))
  await db.schema
    .alterTable(table)
    .addColumn(name, type, (builder) => defineColumn(builder, dialect, name, column))
    .execute()
  if (column.reference) await createIndex(db, dialect, table, { columns: [name] })
}

/**
 * Gives a column of a table with rows another definition, such as more values of a `oneOf`. The
 * values stay. The new column needs a default, or must be nullable. `indexes` are all indexes with
 * the column: a column with an index cannot be dropped.
 */
export async function replaceColumn(
  db: Kysely<unknown>,
  dialect: Dialect,
  [table, name]: [table: string, name: string],
  column: Column,
  indexes: readonly Index[] = [],
): Promise<void> {
  const next = `${name}_next`
  await addColumn(db, dialect, table, next, column)
  await sql`update ${sql.table(table)} set ${sql.ref(next)} = ${sql.ref(name)}`.execute(db)
  for (const index of indexes) await db.schema.dropIndex(indexName(table, index)).execute()
  await db.schema.alterTable(table).dropColumn(name).execute()
  await db.schema.alterTable(table).renameColumn(next, name).execute()
  for (const index of indexes) await createIndex(db, dialect, table, index)
}

const indexName = (table: string, { columns, isUnique }: Index): string =>
  `${table}_${columns.join('_')}_${isUnique ? 'unique' : 'index'}`

export async function createIndex(db: Kysely<unknown>, dialect: Dialect, table: string, index: Index): Promise<void> {
  let builder = db.schema
    .createIndex(indexName(table, index))
    .on(table)
    .columns([...index.columns])
  if (index.isUnique) builder = builder.unique()
  if (index.whenTrue) {
    builder = builder.where(sql<boolean>`${sql.ref(index.whenTrue)} = ${sql.raw(dialect.flagLiteral(true))}`)
  }
  await builder.execute()
}

function defineColumn(
  builder: ColumnDefinitionBuilder,
  dialect: Dialect,
  name: string,
  column: Column,
): ColumnDefinitionBuilder {
  let defined = builder
  if (column.kind !== 'id' && !column.isNullable) defined = defined.notNull()
  if (column.initial !== undefined) defined = defined.defaultTo(sql.raw(literal(dialect, column.initial)))
  const conditions = [dialect.columnCheck(column.kind, `"${name}"`), column.check?.(`"${name}"`)].filter(Boolean)
  if (conditions.length > 0) defined = defined.check(sql.raw(conditions.join(' and ')))
  if (column.reference) {
    defined = defined.references(`${column.reference.table}.id`).onDelete(column.reference.onDelete)
  }
  return defined
}

function withInitial(kind: ColumnKind, initial: string | number | boolean | undefined): Column {
  return initial === undefined ? { kind } : { kind, initial }
}

function literal(dialect: Dialect, value: string | number | boolean): string {
  if (typeof value === 'boolean') return dialect.flagLiteral(value)
  return typeof value === 'number' ? String(value) : quoted(value)
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}
