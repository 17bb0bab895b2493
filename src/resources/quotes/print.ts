// A quote as a PDF (DOMAIN 12.3). document.ts has what is on the paper; print.entry.ts draws it in a subprocess.
import { download } from '../../kernel/download.ts'
import { draw } from '../../kernel/drawing.ts'
import { today } from '../../kernel/format.ts'
import type { Handler } from '../../kernel/handler.ts'
import { programAt } from '../../kernel/offload.ts'
import type * as Entry from './print.entry.ts'
import { quotes } from './resource.ts'

const print = programAt<typeof Entry>(import.meta.url, './print.entry')

/** So many bytes of a subject fit into a file name beside the rest of it. */
const longestSubject = 200

export const printQuote: Handler<'printQuote'> = async (ctx, { params }) => {
  const { timezone, appName, locale, currency } = ctx.services.config
  const quote = await quotes.get(ctx, params.id)
  const date = today(new Date(quote.created_at), timezone)
  const body = await draw(ctx, print, { quote, date, config: { appName, locale, currency } })
  return download({ mediaType: 'application/pdf', body, name: `Quote_${shortened(quote.subject)}_${date}.pdf` })
}

function shortened(subject: string): string {
  let kept = ''
  for (const character of subject) {
    if (Buffer.byteLength(kept + character) > longestSubject) break
    kept += character
  }
  return kept.trim()
}
