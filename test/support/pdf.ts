// Reads PDFs that pdfmake wrote: pieces of text with their position and glyphs.
import { inflateSync } from 'node:zlib'

export interface Shown {
  page: number
  x: number
  y: number
  /** The text that a reader copies from the PDF, in visual order. */
  text: string
  glyphs: number[]
  font: string
}

export function textOf(pdf: Buffer): Shown[] {
  const objects = objectsOf(pdf)
  const unicode = new Map<string, Map<number, string>>()
  const shown: Shown[] = []
  const pages = [...objects].filter(([, { head }]) => /\/Type \/Page\b(?!s)/.test(head)).sort(([a], [b]) => a - b)
  for (const [page, [, { head }]] of pages.entries()) {
    const fonts = new Map<string, string>()
    const resources = /\/Resources (\d+) 0 R/.exec(head)?.[1]
    for (const [, name = '', ref = ''] of (objects.get(Number(resources))?.head ?? '').matchAll(/\/(F\d+) (\d+) 0 R/g))
      fonts.set(name, ref)
    const content = objects.get(Number(/\/Contents (\d+) 0 R/.exec(head)?.[1]))?.stream.toString('latin1') ?? ''
    for (const [block] of content.matchAll(/BT[\s\S]*?ET/g)) {
      const [, x, y] = /1 0 0 1 (\S+) (\S+) Tm/.exec(block) ?? []
      const font = fonts.get(/\/(F\d+) \S+ Tf/.exec(block)?.[1] ?? '') ?? ''
      const hex = [...block.matchAll(/<([0-9a-f]+)>/g)].map(([, each]) => each).join('')
      const glyphs = (hex.match(/.{4}/g) ?? []).map((each) => Number.parseInt(each, 16))
      if (!unicode.has(font)) unicode.set(font, mapOf(objects, font))
      const text = glyphs.map((glyph) => unicode.get(font)?.get(glyph) ?? '\ufffd').join('')
      shown.push({ page, x: Number(x), y: Number(y), text, glyphs, font })
    }
  }
  return shown
}

/** Returns the lines of a document in visual order, from left to right. */
export function linesOf(shown: readonly Shown[]): string[] {
  const lines = new Map<string, Shown[]>()
  for (const each of shown) {
    const key = `${each.page} ${Math.round(each.y)}`
    lines.set(key, [...(lines.get(key) ?? []), each])
  }
  return [...lines.values()].map((line) =>
    line
      .sort((a, b) => a.x - b.x)
      .map(({ text }) => text)
      .join(''),
  )
}

interface PdfObject {
  head: string
  stream: Buffer
}

function objectsOf(pdf: Buffer): Map<number, PdfObject> {
  const text = pdf.toString('latin1')
  const objects = new Map<number, PdfObject>()
  for (const { 1: id, index } of text.matchAll(/^(\d+) 0 obj$/gm)) {
    const from = index + `${id} 0 obj\n`.length
    const begin = text.indexOf('\nstream\n', from)
    const end = text.indexOf('\nendobj', from)
    if (begin < 0 || begin > end) objects.set(Number(id), { head: text.slice(from, end), stream: Buffer.alloc(0) })
    else {
      const head = text.slice(from, begin)
      const length = Number(/\/Length (\d+)/.exec(head)?.[1])
      const bytes = pdf.subarray(begin + 8, begin + 8 + length)
      objects.set(Number(id), { head, stream: head.includes('/FlateDecode') ? inflateSync(bytes) : bytes })
    }
  }
  return objects
}

/** Returns the character of each glyph of a font. */
function mapOf(objects: Map<number, PdfObject>, font: string): Map<number, string> {
  const ref = /\/ToUnicode (\d+) 0 R/.exec(objects.get(Number(font))?.head ?? '')?.[1]
  const cmap = objects.get(Number(ref))?.stream.toString('latin1') ?? ''
  const map = new Map<number, string>()
  for (const [, first = '', list = ''] of cmap.matchAll(/<([0-9a-f]+)> <[0-9a-f]+> \[([^\]]*)\]/g)) {
    let glyph = Number.parseInt(first, 16)
    for (const [, codes = ''] of list.matchAll(/<([^>]*)>/g)) {
      const units = codes.split(' ').map((each) => Number.parseInt(each, 16))
      map.set(glyph++, String.fromCharCode(...units.filter((unit) => !Number.isNaN(unit))))
    }
  }
  return map
}
