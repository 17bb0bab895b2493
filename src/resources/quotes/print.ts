// Prints a quote as a PDF. document.ts has the layout, and print.entry.ts draws the
// PDF in a subprocess.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { download } from '../../kernel/files/download.ts'
import { draw } from '../../kernel/files/drawing.ts'
import type { Handler } from '../../kernel/handler.ts'
import { programAt } from '../../kernel/runtime/offload.ts'
import type { Texts } from '../../texts/texts.ts'
import { withLogo } from '../configuration/company.ts'
import { textsOfPerson } from '../persons/language.ts'
import type { PrintedQuote } from './document.ts'
import { documentOf, printedDateOf, sentPdf } from './documents.ts'
import type * as Entry from './print.entry.ts'
import { quotes } from './resource.ts'

const print = programAt<typeof Entry>(import.meta.url, './print.entry')

/** The maximum number of bytes of the quote's subject in the file name of the PDF. */
const maxSubjectLength = 200

export const printQuote: Handler<'printQuote'> = async (ctx, { params }) => {
  const quote = await quotes.get(ctx, params.id)
  const textsOf = ({ locale }: PrintedQuote['config']): Promise<Texts> => ctx.services.textsFor(ctx, locale)
  const drawn = async (printed: PrintedQuote): Promise<Buffer> => {
    const { language, messages } = await textsOf(printed.config)
    return draw(ctx, print, { ...printed, language, messages })
  }
  const body = (await sentPdf(ctx, quote.id, drawn)) ?? (await drawn(await draft(ctx, quote)))
  const { say } = await textsOfPerson(ctx, quote.person_id)
  const parts = [say('quote.name'), quote.number ?? [], shortened(quote.subject), printedDateOf(ctx, quote)].flat()
  return download({ mediaType: 'application/pdf', body, name: `${parts.join('_')}.pdf` })
}

async function draft(ctx: Context, quote: Schema<'Quote'>): Promise<PrintedQuote> {
  const document = await documentOf(ctx, quote)
  return { ...document, seller: await withLogo(ctx, document.seller) }
}

function shortened(subject: string): string {
  let kept = ''
  for (const character of subject) {
    if (Buffer.byteLength(kept + character) > maxSubjectLength) break
    kept += character
  }
  return kept.trim()
}
