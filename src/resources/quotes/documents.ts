// The documents of sent quotes. Sending stores what the PDF shows: the quote, the seller, the
// customer and the settings. The first print draws the PDF from that and stores its bytes, so all
// prints of a quote are equal, whatever changes later. The files belong to the quote: backups
// contain them, and they are deleted with the quote for good.
import { Readable } from 'node:stream'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { DownloadParts } from '../../kernel/files/download.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { cleanUpUploads, prepareUploads } from '../../kernel/files/multipart.ts'
import { today } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { companyOf, type StoredCompany, withLogo } from '../configuration/company.ts'
import { addFile, attachFile } from '../files/attach.ts'
import { textsOfPerson } from '../persons/language.ts'
import type { PrintedQuote } from './document.ts'

/** The contents of a PDF in their stored form: the seller names its logo by the id of a file. */
export type QuoteDocument = Omit<PrintedQuote, 'seller'> & { seller: StoredCompany }

/** Returns the day that the PDF of a quote shows, YYYY-MM-DD. */
export const printedDateOf = (ctx: Context, { sent_at, created_at }: Schema<'Quote'>): string =>
  today(new Date(sent_at ?? created_at), ctx.services.config.timezone)

export async function documentOf(ctx: Context, quote: Schema<'Quote'>): Promise<QuoteDocument> {
  const { appName, currency } = ctx.services.config
  const { locale } = await textsOfPerson(ctx, quote.person_id)
  return {
    quote,
    date: printedDateOf(ctx, quote),
    seller: await companyOf(ctx),
    organization: await organizationOf(ctx, quote.person_id),
    replaces: await numberOf(ctx, quote.revises_id),
    config: { appName, locale, currency },
  }
}

/**
 * Returns the name of the customer's organization, or null without an organization. Visibility is
 * not checked, because every reference to an organization shows its name.
 */
export async function organizationOf({ db }: Context, personId: number): Promise<string | null> {
  const row = await db
    .selectFrom('persons')
    .innerJoin('organizations', 'organizations.id', 'persons.organization_id')
    .select('organizations.name')
    .where('persons.id', '=', personId)
    .executeTakeFirst()
  return row?.name ?? null
}

async function numberOf({ db }: Context, id: number | null): Promise<string | null> {
  if (id === null) return null
  return (await db.selectFrom('quotes').select('number').where('id', '=', id).executeTakeFirst())?.number ?? null
}

/** Stores what the PDF of the quote shows. Must run in the transaction that sends the quote. */
export async function storeDocument(ctx: Context, quote: Schema<'Quote'>): Promise<void> {
  const document = await documentOf(ctx, quote)
  const { logoFileId } = document.seller
  const logo = logoFileId === null ? null : await attachFile(ctx, logoFileId, { type: 'quotes', id: quote.id })
  const shown = { ...quote, leads: [], tags: [], custom_attributes: {} }
  const printed = JSON.stringify({ ...document, quote: shown, seller: { ...document.seller, logoFileId: logo } })
  await ctx.db.insertInto('quote_documents').values({ quote_id: quote.id, printed, logo_file_id: logo }).execute()
}

type Pdf =
  | Extract<DownloadParts['body'], Buffer>
  | NonNullable<Awaited<ReturnType<Context['services']['files']['find']>>>

/** Returns the PDF of a sent quote, which `draw` draws once. Null for a draft. */
export async function sentPdf(
  ctx: Context,
  quoteId: number,
  draw: (printed: PrintedQuote) => Promise<Buffer>,
): Promise<Pdf | null> {
  const stored = await ctx.db
    .selectFrom('quote_documents')
    .leftJoin('files', 'files.id', 'quote_documents.file_id')
    .select(['quote_documents.printed', 'files.sha256'])
    .where('quote_id', '=', quoteId)
    .executeTakeFirst()
  if (!stored) return null
  const { printed, sha256 } = stored
  const kept = sha256 === null ? null : await ctx.services.files.find(sha256)
  if (kept) return kept
  const document = JSON.parse(printed) as QuoteDocument
  const bytes = await draw({ ...document, seller: await withLogo(ctx, document.seller) })
  if (sha256 === null && !(await storePdf(ctx, quoteId, bytes))) return sentPdf(ctx, quoteId, draw)
  return bytes
}

/** Stores the bytes as the PDF of the quote. Returns false when another print was faster. */
async function storePdf(ctx: Context, quoteId: number, bytes: Buffer): Promise<boolean> {
  const upload = await ctx.services.files.receive(Readable.from([bytes]), `Quote_${quoteId}.pdf`)
  const files = new Map<string, Upload>([['pdf', upload]])
  const own: Context = { ...ctx, uploads: { files, kept: new Set() } }
  let isStored = false
  try {
    await prepareUploads(own)
    isStored = await transaction(own, async (ctx) => {
      const free = ctx.db.updateTable('quote_documents').where('quote_id', '=', quoteId).where('file_id', 'is', null)
      // Locks the row, so that a second print waits for the file of the first.
      const { numUpdatedRows } = await free.set({ quote_id: quoteId }).executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) return false
      await free.set({ file_id: await addFile(ctx, upload, { type: 'quotes', id: quoteId }) }).execute()
      return true
    })
    return isStored
  } finally {
    await cleanUpUploads(own, !isStored)
  }
}
