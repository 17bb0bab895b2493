// Opens the file of an import: its bytes, or its rows with the options of the import.
import type { Context } from '../../../kernel/context.ts'
import { fileRows } from '../../files/rows.ts'
import { unreadable } from '../errors.ts'
import { type ImportRow, mappingOf } from '../settings.ts'
import { filledDown } from './fill-down.ts'
import { cardType, createFindings, type Findings, readRows, type SheetRow } from './read-rows.ts'

/** Returns the file of the import with its content. Throws `ImportStop` when it is gone. */
export async function openFile(ctx: Context, row: ImportRow) {
  const [file] = row.file_id === null ? [] : await fileRows(ctx, [row.file_id])
  const source = file && (await ctx.services.files.find(file.sha256))
  if (!file || !source) throw unreadable('The file of the import is gone.')
  // The type of a card file in another encoding than UTF-8 cannot be detected.
  return { file, source, contentType: /\.vcf$/i.test(file.name) ? cardType : file.content_type }
}

/** Returns the rows of the import's file, including the header. Throws `ImportStop`. */
export async function openTable(
  ctx: Context,
  row: ImportRow,
  findings: Findings = createFindings(),
): Promise<AsyncGenerator<SheetRow>> {
  const { source, contentType } = await openFile(ctx, row)
  const { field_separator: separator, encoding, header_row: headerRow, sheet } = row
  const rows = readRows(source, { contentType, separator, encoding, headerRow, sheet, findings })
  return filledDown(rows, mappingOf(row))
}

/** Returns the number of rows without the header. Stops counting after `most` rows. */
export async function countRows(ctx: Context, row: ImportRow, most = Number.POSITIVE_INFINITY): Promise<number> {
  let count = -1
  for await (const _row of await openTable(ctx, row)) if (++count > most) break
  return Math.max(count, 0)
}
