// Exports the data of a person as a ZIP archive: a JSON file for each table of personal-data.ts,
// the files, and a page for reading.
import type { Readable } from 'node:stream'
import { sql } from 'kysely'
import { isIn } from '../../../../db/long-lists.ts'
import type { Context } from '../../../kernel/context.ts'
import { download } from '../../../kernel/files/download.ts'
import type { Handler } from '../../../kernel/handler.ts'
import type { Row } from '../../../kernel/history/archive.ts'
import { escapeHtml } from '../../../kernel/values/format.ts'
import { assertFound } from './assert-found.ts'
import { rowsOf } from './erase.ts'
import { personalTables } from './personal-data.ts'
import { type Scope, scopeOfPerson } from './scope.ts'

/** Columns that only help this program to compare and sort. */
const isInternal = (column: string): boolean => column.endsWith('_key') || column === 'version'

export const exportPersonData: Handler<'exportPersonData'> = async (ctx, { params: { id } }) => {
  await assertFound(ctx, id)
  const scope = await scopeOfPerson(ctx, id, false)
  return download({ mediaType: 'application/zip', body: await archiveOf(ctx, scope), name: `person-${id}.zip` })
}

async function archiveOf(ctx: Context, scope: Scope): Promise<Readable> {
  const { default: yazl } = await import('yazl')
  const zip = new yazl.ZipFile()
  const options = { mtime: ctx.time }
  const sections: string[] = []
  for (const [table, rules] of personalTables) {
    const rows = rules.title === undefined ? [] : await rowsFor(ctx, table, scope)
    if (rows.length === 0) continue
    zip.addBuffer(Buffer.from(JSON.stringify(rows, null, 2)), `${table}.json`, options)
    sections.push(section(rules.title ?? table, rows))
  }
  zip.addBuffer(Buffer.from(pageOf(scope.id, sections)), 'index.html', options)
  const files = scope.ids.files.length === 0 ? [] : await filesOf(ctx, scope)
  for (const { id, name, sha256 } of files) {
    const stored = await ctx.services.files.find(sha256)
    if (!stored) continue
    const safe = name.replaceAll(/[^\p{L}\p{N}. _-]/gu, '_').replace(/^\.+/, '_')
    const entry = `files/${id}-${safe}`
    if (stored.size === 0) zip.addBuffer(Buffer.alloc(0), entry, options)
    // The bytes are read when the archive arrives at them.
    else zip.addReadStreamLazy(entry, options, (done) => done(null, stored.read(0, stored.size - 1)))
  }
  zip.end()
  return zip.outputStream as Readable
}

/** Returns the files of the person. Files of imports and of shared e-mails have data of others. */
const filesOf = (ctx: Context, { ids }: Scope) =>
  ctx.db
    .selectFrom('files')
    .select(['id', 'name', 'sha256'])
    .where('id', 'in', ids.files)
    .where((eb) => eb.or([eb('owner_type', 'is', null), eb('owner_type', '<>', 'imports')]))
    .where((eb) => eb.not(eb.and([eb('owner_type', '=', 'emails'), eb('owner_id', 'in', [0, ...ids.sharedEmails])])))
    .execute()

async function rowsFor(ctx: Context, table: string, scope: Scope): Promise<object[]> {
  const rules = personalTables.find(([name]) => name === table)?.[1]
  if (!rules) return []
  const { shared } = rules
  const others = shared && shared[1] !== 'addresses' ? scope.ids[shared[1]] : []
  const ways = [
    rowsOf(rules, scope),
    others.length > 0 && shared ? isIn(sql.ref(shared[0]), [...others]) : null,
  ].filter((way) => way !== null)
  if (ways.length === 0) return []
  const found = sql<Row>`select * from ${sql.table(table)} where ${sql.join(ways, sql` or `)}`
  return (await found.execute(ctx.db)).rows.toSorted(byId).map((row) =>
    Object.fromEntries(
      Object.entries(row)
        .filter(([column]) => !isInternal(column))
        .map(([column, value]) => [column, readable(value)]),
    ),
  )
}

/** Orders rows by id, and rows without one by their text, so that two archives are the same. */
const byId = (one: Row, other: Row): number =>
  Number(one.id ?? 0) - Number(other.id ?? 0) || (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)

function readable(value: unknown): unknown {
  if (typeof value !== 'string' || !/^[[{]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const section = (title: string, rows: readonly object[]): string =>
  `<h2>${escapeHtml(title)}</h2>${rows
    .map(
      (row) =>
        `<dl>${Object.entries(row)
          .filter(([, value]) => value !== null && value !== '')
          .map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(textOf(value))}</dd>`)
          .join('')}</dl>`,
    )
    .join('<hr>')}`

const pageOf = (id: number, sections: readonly string[]): string =>
  `<!doctype html><meta charset="utf-8"><title>Person ${id}</title>
<style>body{font:16px sans-serif;max-width:60em;margin:2em auto}dl{display:grid;grid-template-columns:12em 1fr}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}</style>
<h1>The data of person ${id}</h1>${sections.join('')}`
