// Types of pdfmake internals that its own types lack.
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
   * The direction level of the text (even: left to right, odd: right to left), set by typeset.ts.
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
 * Calls `order` on each line that pdfmake has filled, because pdfmake itself lays out only left to
 * right.
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
