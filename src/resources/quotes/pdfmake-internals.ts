// Types of internal pdfmake objects, which the published types of pdfmake lack, and a hook into the
// line layout of pdfmake.
import { createRequire } from 'node:module'

export interface VirtualFileSystem {
  writeFileSync(name: string, bytes: Buffer): void
}

export interface PdfInline {
  text: string
  x: number
  width: number
  trailingCut: number
  leadingCut: number
  /**
   * The direction level of the text: even for left to right, odd for right to left. Set by
   * typeset.ts.
   */
  level?: number
}

export interface PdfLine {
  inlines: PdfInline[]
  inlineWidths: number
  trailingCut: number
  leadingCut: number
}

interface Builder {
  prototype: { buildNextLine(node: unknown): PdfLine | null }
}

/**
 * Makes pdfmake call `order` for each line that it has filled. pdfmake itself lays out text only
 * from left to right.
 */
export function afterEachLine(order: (line: PdfLine) => void): void {
  const module = createRequire(import.meta.url)('pdfmake/js/LayoutBuilder.js') as { default: Builder }
  const { prototype } = module.default
  const { buildNextLine } = prototype
  prototype.buildNextLine = function (node) {
    const line = buildNextLine.call(this, node)
    if (line) order(line)
    return line
  }
}
