// Types of internal objects of pdfmake and fontkit, which their published types lack, a hook into
// the line layout of pdfmake, and a correction of fontkit.
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

interface AnchorProcessor {
  applyAnchor?: (mark: { markAnchor: unknown }, base: unknown, baseIndex: number) => void
}

/** A font of fontkit, with the part of it that places accents and vowel signs. */
export interface LayoutFont {
  _layoutEngine?: { engine?: { GPOSProcessor?: AnchorProcessor | null } | null }
}

const mended = new WeakSet<object>()

/**
 * Makes fontkit leave a mark where it is if the font has no anchor for the mark on its base, as
 * OpenType allows (MarkBasePos, a NULL offset). fontkit 2.0.4 throws a TypeError instead, for some
 * words in Malayalam and Gurmukhi.
 */
export function allowMissingAnchors(font: LayoutFont): void {
  const processor = font._layoutEngine?.engine?.GPOSProcessor
  const prototype: AnchorProcessor | null = processor ? Object.getPrototypeOf(processor) : null
  const applyAnchor = prototype?.applyAnchor
  if (!prototype || !applyAnchor || mended.has(prototype)) return
  mended.add(prototype)
  prototype.applyAnchor = function (this: AnchorProcessor, mark, base, baseIndex) {
    if (base && mark.markAnchor) applyAnchor.call(this, mark, base, baseIndex)
  }
}
