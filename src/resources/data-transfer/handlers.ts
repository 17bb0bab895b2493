// What can be done with imports through the API, as long as they are records.
import { download } from '../../kernel/download.ts'
import { notFound } from '../../kernel/errors.ts'
import type { Handler, HandlersFor } from '../../kernel/handler.ts'
import { bytesOf } from '../files/handlers.ts'
import { rowsOf } from '../files/rows.ts'
import { imports } from './resource.ts'
import { sampleOf } from './samples.ts'

const downloadImportFile: Handler<'downloadImportFile'> = async (ctx, { params }) => {
  const { file } = await imports.get(ctx, params.id)
  const [row] = file ? await rowsOf(ctx, [file.id]) : []
  if (!row) throw notFound('file of import', params.id)
  return bytesOf(ctx, row)
}

const downloadImportSample: Handler<'downloadImportSample'> = async (ctx, { params }) =>
  download({
    mediaType: 'text/csv; charset=utf-8',
    name: `sample-${params.type}.csv`,
    body: await sampleOf(ctx, params.type),
  })

export const handlers: HandlersFor<
  | 'listImports'
  | 'getImport'
  | 'createImport'
  | 'updateImport'
  | 'deleteImport'
  | 'downloadImportFile'
  | 'downloadImportSample'
> = { ...imports.handlers, downloadImportFile, downloadImportSample }
