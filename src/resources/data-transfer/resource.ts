// Defines the imports resource. An import record contains the file and the options.
// jobs.ts runs the import.
import { didYouMean } from '../../contract/input/validation-errors.ts'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { uploaded } from '../../kernel/files/multipart.ts'
import { workbookType } from '../../kernel/files/workbook.ts'
import type { StoredReference } from '../../kernel/history/stored-references.ts'
import { timeField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { customAttributes } from '../attributes/attribute-set.ts'
import { referencesToAttribute } from '../attributes/references.ts'
import { addFile, attachFile, checkFileLimits, checkFileReference, fileRefs, releaseFiles } from '../files/attach.ts'
import { importColumns } from './map-columns/columns.ts'
import { canOpen, readableImports } from './owner.ts'
import { cardType } from './read-file/read-rows.ts'
import { type Constants, type ImportType, type Mapping, mappedFields } from './settings.ts'

type Body = Schema<'ImportChangeForm'>
type Import = Schema<'Import'>
type Row = {
  id: number
  type: string
  state: string
  user_id: number | null
  file_id: number | null
  action: string
  validation_strategy: string
  allowed_errors: number
  field_separator: string
  encoding: string
  date_format: string | null
  decimal_separator: string | null
  mapping: string | null
  constants: string | null
  header_row: number | null
  sheet: string | null
  unknown_references: string
  missing_names: string
  replace_lists: number
  omit_invalid_cells: number
  process_in_queue: number
}

/**
 * The accepted file types. Text of any type may contain separated values. The type of text that is
 * not UTF-8 cannot be detected, so its file name decides.
 */
const limits = { types: ['text/csv', 'text/plain', workbookType, cardType], otherText: /\.(csv|tsv|txt|vcf)$/i }
/** The states in which an import waits for a user's action and can be changed. */
const waitingStates: ReadonlySet<string> = new Set(['pending', 'validated', 'invalid'])
/** The columns of an import that has not been validated. */
export const initialState = {
  state: 'pending' as const,
  processed_rows_count: 0,
  invalid_rows_count: 0,
  omitted_cells_count: 0,
  errors_count: 0,
  errors: '[]',
  changes: '[]',
  warnings: '[]',
  preview: null,
  summary: JSON.stringify({ created: 0, updated: 0, deleted: 0, skipped: 0 }),
  progress: 0,
  rows_count: null,
  started_at: null,
  completed_at: null,
}

async function toImportRow(body: Body, writing: Writing<Row>) {
  const { ctx, current, errors } = writing
  if (current && !waitingStates.has(current.state))
    throw new Problem('state_conflict', `The import is ${current.state}; it can be changed while it waits.`)
  if (current && body.type !== undefined && body.type !== current.type)
    errors.invalid('type', 'The type of an import cannot be changed.')
  await checkFile(writing, body)
  const type = current?.type ?? body.type
  if (body.mapping && type !== undefined) await checkMapping(writing, type as ImportType, body.mapping)
  if (body.constants && type !== undefined) await checkConstants(writing, type as ImportType, body.constants)
  const columns = { ...optionColumns(body), type: current ? undefined : body.type }
  const owner = { user_id: ctx.user?.id ?? null }
  if (!current) return { ...columns, ...owner }
  const sent = sentFile(ctx, body)
  const hasFile = sent !== undefined && ('upload' in sent || sent.id !== current.file_id)
  const isOther = Object.entries(columns).some(
    ([name, each]) => each !== undefined && each !== current[name as keyof Row],
  )
  if (!hasFile && !isOther) return columns
  if (!hasFile && !canOpen(ctx, current))
    throw new Problem('forbidden', 'The import belongs to another user; send your own file to take it over.')
  // A change of file or options makes the last validation invalid. The caller becomes the owner of
  // the import.
  return { ...columns, ...initialState, ...owner }
}

const flagOf = (value: boolean | undefined): number | undefined => (value === undefined ? undefined : Number(value))

/** Returns the columns of the options; undefined for an option that the body omits. */
const optionColumns = (body: Body) => ({
  action: body.action,
  validation_strategy: body.validation_strategy,
  allowed_errors: body.allowed_errors,
  field_separator: body.field_separator,
  encoding: body.encoding,
  date_format: body.date_format,
  decimal_separator: body.decimal_separator,
  mapping: body.mapping ? JSON.stringify(body.mapping) : body.mapping,
  constants: body.constants ? JSON.stringify(body.constants) : body.constants,
  header_row: body.header_row,
  sheet: body.sheet,
  unknown_references: body.unknown_references,
  missing_names: body.missing_names,
  replace_lists: flagOf(body.replace_lists),
  omit_invalid_cells: flagOf(body.omit_invalid_cells),
  process_in_queue: flagOf(body.process_in_queue),
})

/** Adds an error for each field and each header that a rule names and that does not exist. */
async function checkMapping({ ctx, errors }: Writing<Row>, type: ImportType, mapping: Mapping): Promise<void> {
  const known = await importColumns(ctx, type)
  for (const [header, mapped] of Object.entries(mapping)) {
    const at = `mapping.${header}`
    if (header.length > maxHeaderLength)
      errors.invalid('mapping', `A header has at most ${maxHeaderLength} characters.`)
    else
      for (const field of mappedFields(mapped))
        if (!known.has(field)) errors.invalid(at, `There is no such field.${didYouMean(field, known.keys())}`)
  }
}

async function checkConstants({ ctx, errors }: Writing<Row>, type: ImportType, constants: Constants): Promise<void> {
  const known = await importColumns(ctx, type)
  for (const field of Object.keys(constants))
    if (!known.has(field))
      errors.invalid(`constants.${field}`, `There is no such field.${didYouMean(field, known.keys())}`)
}

const maxHeaderLength = 1000

/** Returns the custom attributes that the mapping names. A completed import needs none of them. */
export async function referencesInMapping(ctx: Context, row: Row): Promise<StoredReference[]> {
  if ((row.mapping === null && row.constants === null) || ['completed', 'undoing', 'undone'].includes(row.state))
    return []
  const columns = await importColumns(ctx, row.type as ImportType)
  const mapped = Object.values(JSON.parse(row.mapping ?? '{}') as Mapping).flatMap(mappedFields)
  const fixed = Object.keys(JSON.parse(row.constants ?? '{}') as Constants)
  const codes = [...mapped, ...fixed].map((name) => {
    const [first, code] = columns.get(name)?.path ?? []
    return first === 'custom_attributes' ? code : undefined
  })
  const own = await customAttributes(ctx, row.type as ImportType)
  // An attribute with a negative id is only proposed (`withProposedAttributes`).
  const named = own.filter(({ id, code }) => id > 0 && codes.includes(code))
  return named.flatMap((each) => referencesToAttribute('mapping', each))
}

/** Returns the file that the body names: a form upload, or an id from `file_id` or a FileRef. */
function sentFile(ctx: Context, { file, file_id }: Body): { upload: Upload } | { id: number } | undefined {
  if (typeof file === 'string') return { upload: uploaded(ctx, file) }
  const id = file_id ?? file?.id
  return id === undefined ? undefined : { id }
}

async function checkFile({ ctx, current, errors }: Writing<Row>, body: Body): Promise<void> {
  const sent = sentFile(ctx, body)
  const field = body.file_id === undefined ? 'file' : 'file_id'
  if (typeof body.file === 'string' && body.file_id !== undefined)
    errors.invalid('file_id', 'Send either file or file_id.')
  if (sent === undefined) {
    if (!current) errors.invalid('file_id', 'The field is required.')
  } else if ('upload' in sent) checkFileLimits(errors, 'file', sent.upload, limits)
  else if (sent.id !== current?.file_id) await checkFileReference({ ctx, errors }, field, sent.id, limits)
}

/** Attaches the file that the body names. A new file resets the import to `pending`. */
async function attachSentFile(ctx: Context, id: number, body: Body): Promise<void> {
  const sent = sentFile(ctx, body)
  if (sent === undefined) return
  const owner = { type: 'imports', id }
  const { file_id: old } = await ctx.db
    .selectFrom('imports')
    .select('file_id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  if ('id' in sent && sent.id === old) return
  const fileId = 'id' in sent ? await attachFile(ctx, sent.id, owner) : await addFile(ctx, sent.upload, owner)
  await ctx.db
    .updateTable('imports')
    .set({ file_id: fileId, error_file_id: null, ...initialState })
    .where('id', '=', id)
    .execute()
  if (old !== null) await releaseFiles(ctx, owner, [old])
}

/** Returns the undo without the place where it continues. */
function undoOf(text: string): Import['undo'] {
  const { before: _before, done: _done, ...shown } = JSON.parse(text)
  return shown
}

export const downloadPathOf = (operation: 'downloadImportFile' | 'downloadImportErrorReport', id: number): string =>
  pathTo(operations[operation], id)

const resource = defineResource({
  noun: 'import',
  table: 'imports',
  operations: {
    list: 'listImports',
    get: 'getImport',
    create: 'createImport',
    update: 'updateImport',
    delete: 'deleteImport',
  },
  rows: (_ctx, db) => db.selectFrom('imports').selectAll('imports'),
  sort: {
    id: 'imports.id',
    type: 'imports.type',
    state: 'imports.state',
    started_at: 'imports.started_at',
    completed_at: 'imports.completed_at',
    created_at: 'imports.created_at',
  },
  filter: {
    type: valueField('imports.type'),
    action: valueField('imports.action'),
    state: valueField('imports.state'),
    started_at: timeField('imports.started_at'),
    completed_at: timeField('imports.completed_at'),
  },
  search: [],
  withoutColumn: { file: 'links', file_id: 'links' },
  toRow: async (body, writing) => ({
    columns: await toImportRow(body, writing),
    save: (ctx, id) => attachSentFile(ctx, id, body),
  }),
  toReply: (row): Import => ({
    id: row.id,
    type: row.type as Import['type'],
    action: row.action as Import['action'],
    validation_strategy: row.validation_strategy as Import['validation_strategy'],
    allowed_errors: row.allowed_errors,
    field_separator: row.field_separator as Import['field_separator'],
    encoding: row.encoding as Import['encoding'],
    date_format: row.date_format as Import['date_format'],
    decimal_separator: row.decimal_separator as Import['decimal_separator'],
    mapping: row.mapping === null ? null : (JSON.parse(row.mapping) as Mapping),
    constants: row.constants === null ? null : (JSON.parse(row.constants) as Constants),
    header_row: row.header_row,
    sheet: row.sheet,
    unknown_references: row.unknown_references as Import['unknown_references'],
    missing_names: row.missing_names as Import['missing_names'],
    replace_lists: row.replace_lists === 1,
    omit_invalid_cells: row.omit_invalid_cells === 1,
    process_in_queue: row.process_in_queue === 1,
    state: row.state as Import['state'],
    processed_rows_count: row.processed_rows_count,
    invalid_rows_count: row.invalid_rows_count,
    omitted_cells_count: row.omitted_cells_count,
    errors_count: row.errors_count,
    errors: JSON.parse(row.errors) as Import['errors'],
    changes: JSON.parse(row.changes) as Import['changes'],
    warnings: JSON.parse(row.warnings) as Import['warnings'],
    preview: row.preview === null ? null : (JSON.parse(row.preview) as Import['preview']),
    summary: JSON.parse(row.summary) as Import['summary'],
    progress: row.progress,
    undo: row.undo === null ? null : undoOf(row.undo),
    // `loadRelated` fills in the file.
    file: row.file_id === null ? null : { id: row.file_id, name: '', size: 0, content_type: '', url: '' },
    file_path: row.file_id === null ? null : downloadPathOf('downloadImportFile', row.id),
    error_file_path: row.invalid_rows_count === 0 ? null : downloadPathOf('downloadImportErrorReport', row.id),
    started_at: row.started_at,
    completed_at: row.completed_at,
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies) => {
    const files = await fileRefs(
      ctx,
      replies.flatMap(({ file }) => file?.id ?? []),
    )
    for (const reply of replies) reply.file = files.get(reply.file?.id ?? 0) ?? null
  },
  refersTo: referencesInMapping,
  beforeDelete: async (ctx, { id, state }) => {
    if (state === 'processing') throw new Problem('state_conflict', 'The import is processing; cancel it first.')
    if (state === 'undoing') throw new Problem('state_conflict', 'The import is being undone.')
    await ctx.db.updateTable('imports').set({ file_id: null, error_file_id: null }).where('id', '=', id).execute()
    await releaseFiles(ctx, { type: 'imports', id })
  },
})

export const imports = { ...resource, withFiles: readableImports }
