// A quote as a PDF (DOMAIN 12.3). What is on the paper is in document.ts; the library that draws it is large and is loaded
// when the first quote is printed. It reads its own fonts and nothing else.
import { createRequire } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import type { TFontDictionary } from 'pdfmake/interfaces.js'
import { download } from '../../kernel/download.ts'
import { today } from '../../kernel/format.ts'
import type { Handler } from '../../kernel/handler.ts'
import { quoteDocument } from './document.ts'
import { quotes } from './resource.ts'

/** So many bytes of a subject fit into a file name beside the rest of it. */
const longestSubject = 200

export const printQuote: Handler<'printQuote'> = async (ctx, { params }) => {
  const { config } = ctx.services
  const quote = await quotes.get(ctx, params.id)
  const date = today(new Date(quote.created_at), config.timezone)
  const pdfmake = await drawing()
  const body = await pdfmake.createPdf(quoteDocument(quote, { date, config })).getBuffer()
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

async function drawing() {
  const { default: pdfmake } = await import('pdfmake')
  const folder = join(dirname(createRequire(import.meta.url).resolve('pdfmake/package.json')), 'fonts')
  const roboto = (style: string): string => join(folder, 'Roboto', `Roboto-${style}.ttf`)
  const fonts: TFontDictionary = {
    Roboto: {
      normal: roboto('Regular'),
      bold: roboto('Medium'),
      italics: roboto('Italic'),
      bolditalics: roboto('MediumItalic'),
    },
  }
  pdfmake.setFonts(fonts)
  pdfmake.setUrlAccessPolicy(() => false)
  pdfmake.setLocalAccessPolicy((path) => resolve(path).startsWith(folder + sep))
  return pdfmake
}
