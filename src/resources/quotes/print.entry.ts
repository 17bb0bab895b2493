// Draws a quote as a PDF, in a subprocess (kernel/offload.ts). The library is large; it reads its own fonts and nothing else.
import { createRequire } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import pdfmake from 'pdfmake'
import type { TFontDictionary } from 'pdfmake/interfaces.js'
import { type Printed, quoteDocument } from './document.ts'

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

export const run = ({ quote, date, config }: Printed): Promise<Buffer> =>
  pdfmake.createPdf(quoteDocument(quote, { date, config })).getBuffer()
