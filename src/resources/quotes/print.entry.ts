// Draws a quote as a PDF in a subprocess (kernel/runtime/offload.ts), so that the server does not
// load the large PDF libraries. The access policies allow the libraries to read only the fonts in
// their packages.
import { createRequire } from 'node:module'
import { dirname, resolve, sep } from 'node:path'
import pdfmake from 'pdfmake'
import type { TFontDictionary } from 'pdfmake/interfaces.js'
import { quoteDocument, type TranslatedQuote } from './document.ts'
import { loadFonts } from './fonts.ts'
import { isDrawable } from './logo.ts'
import { afterEachLine, type VirtualFileSystem } from './pdfmake-internals.ts'
import { createCharacterCollector, createTypesetter, reorderLine } from './typeset.ts'

const { virtualfs } = pdfmake as unknown as { virtualfs: VirtualFileSystem }
const require = createRequire(import.meta.url)
const folders = ['pdfmake/package.json', '@embedpdf/fonts-arabic', '@embedpdf/fonts-hebrew'].map((name) =>
  resolve(dirname(require.resolve(name)), name.startsWith('@') ? '..' : '.', 'fonts'),
)
pdfmake.setUrlAccessPolicy(() => false)
pdfmake.setLocalAccessPolicy((path) => folders.some((folder) => resolve(path).startsWith(folder + sep)))
afterEachLine(reorderLine)

export async function run(given: TranslatedQuote): Promise<Buffer> {
  const { logo } = given.seller
  const printed = { ...given, seller: { ...given.seller, logo: logo && isDrawable(logo) ? logo : null } }
  try {
    return await drawn(printed)
  } catch (error) {
    // A file that begins like a JPEG may be invalid, so a second attempt prints without the logo.
    if (printed.seller.logo === null) throw error
    return drawn({ ...printed, seller: { ...printed.seller, logo: null } })
  }
}

async function drawn(printed: TranslatedQuote): Promise<Buffer> {
  const points = { all: new Set<number>(), bold: new Set<number>() }
  quoteDocument(printed, createCharacterCollector(points))
  const fonts = await loadFonts(virtualfs, points, printed.config.locale)
  pdfmake.setFonts(fonts.dictionary as TFontDictionary)
  return pdfmake.createPdf(quoteDocument(printed, createTypesetter(fonts))).getBuffer()
}
