// Prepares text for pdfmake. Splits a text into pieces with one font and one direction each
// (Unicode Bidirectional Algorithm). When pdfmake has filled a line, puts the pieces of the line in
// visual order.
import { createRequire } from 'node:module'
import type { Content } from 'pdfmake/interfaces.js'
import type { CharacterSets, Fonts } from './fonts.ts'
import type { PdfInline, PdfLine } from './pdfmake-internals.ts'

interface Bidi {
  getEmbeddingLevels(text: string): { levels: Uint8Array; paragraphs: { level: number }[] }
  getMirroredCharacter(character: string): string | null
}
const bidi = (createRequire(import.meta.url)('bidi-js') as () => Bidi)()

export interface Typesetter {
  /** Returns whether the loaded fonts have a glyph for each character of the text. */
  has(text: string): boolean
  /**
   * Returns one paragraph as pdfmake content. A word of at least `longest` characters may break
   * anywhere. Chinese, Japanese and Korean text may always break anywhere.
   */
  set(text: string, longest?: number): { text: Content[]; alignment?: 'right' }
  setBold(text: string, longest?: number): { text: Content[]; alignment?: 'right'; bold: true }
}

interface Piece {
  text: string
  font: string
  level: number
}

/**
 * Returns a typesetter that only collects the characters of all texts. The fonts for these
 * characters are loaded before the real layout.
 */
export function createCharacterCollector({ all, bold }: CharacterSets): Typesetter {
  const note = (text: string, into = all): void => {
    for (const each of shown(text)) into.add(each.codePointAt(0) ?? 0)
  }
  return {
    // Returns false, so the layout also tries its alternative texts and their characters are
    // collected.
    has: (text) => {
      note(text)
      return false
    },
    set: (text) => {
      note(text)
      return { text: [] }
    },
    setBold(text) {
      note(text)
      note(text, bold)
      return { text: [], bold: true }
    },
  }
}

export function createTypesetter(fonts: Fonts): Typesetter {
  const set: Typesetter['set'] = (text, longest) => {
    const plain = text.replaceAll(/\s+/g, ' ').trim()
    const { levels, isRightToLeft } = levelsOf(plain)
    const words = piecesOf(plain, levels, fonts).flatMap((piece) => wordsOf(piece, longest))
    const pieces = words.map(({ text, font, level }) => ({
      text: toDrawnOrder(text, level),
      font,
      level,
      ...(longest !== undefined && isLong(text, longest) && { wordBreak: 'break-all' as const }),
    }))
    return { text: pieces as Content[], ...(isRightToLeft && { alignment: 'right' as const }) }
  }
  return {
    has: (text) => fonts.has(shown(text)),
    set,
    setBold: (text, longest) => ({ ...set(text, longest), bold: true }),
  }
}

const rightToLeft = /[\p{Script=Arabic}\p{Script=Hebrew}\u200f\u202b\u202e\u2067]/u

function levelsOf(text: string): { levels: Uint8Array; isRightToLeft: boolean } {
  if (!rightToLeft.test(text)) return { levels: new Uint8Array(text.length), isRightToLeft: false }
  const { levels, paragraphs } = bidi.getEmbeddingLevels(text)
  return { levels, isRightToLeft: (paragraphs[0]?.level ?? 0) % 2 === 1 }
}

/** Matches direction marks, variation selectors and zero-width characters, which have no glyph. */
const invisible = /\p{Bidi_Control}|\p{Variation_Selector}|[\u200b\u2060\ufeff]/gu

/**
 * Returns the characters of a text that are drawn. Unusual spaces, minus signs and yen signs are
 * replaced by similar characters that Roboto has.
 */
const shown = (text: string): string =>
  text
    .replaceAll(invisible, '')
    .replaceAll(/[\u2000-\u200a\u202f]/g, '\u00a0')
    .replaceAll('\u2212', '-')
    .replaceAll('\uffe5', '\u00a5')

function piecesOf(text: string, levels: Uint8Array, fonts: Fonts): Piece[] {
  const pieces: Piece[] = []
  let last: Piece | undefined
  let at = 0
  for (const character of text) {
    const level = levels[at] ?? 0
    at += character.length
    const drawn = shown(character)
    if (drawn === '') continue
    const point = drawn.codePointAt(0) ?? 0
    // Marks and punctuation outside ASCII keep the font of the preceding text if that font has
    // them. Letters use the font of their script.
    const font = fonts.of(point, last && neutral.test(drawn) && point >= 0x80 ? last.font : undefined)
    // pdfmake draws the pieces of a line left to right. Right-to-left text needs one piece per word
    // and per space, so that `reorderLine` can reverse their order.
    const isWord = level % 2 === 0 || (drawn !== ' ' && last?.text !== ' ')
    if (last?.font === font && last.level === level && isWord) last.text += drawn
    else {
      last = { text: drawn, font, level }
      pieces.push(last)
    }
  }
  return pieces
}

const neutral = /^[\p{Script=Common}\p{Script=Inherited}]$/u

/** Returns the words of a piece with a long word, so that only the long word breaks anywhere. */
const wordsOf = (piece: Piece, longest: number | undefined): Piece[] =>
  longest !== undefined && isLong(piece.text, longest)
    ? piece.text.split(/(?<= )/).map((text) => ({ ...piece, text }))
    : [piece]

const isLong = (text: string, longest: number): boolean =>
  new RegExp(`[^\\s\\u{10000}-\\u{10ffff}]{${longest},}`, 'u').test(text) && !ideographic.test(text)
const ideographic = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u

/**
 * Returns the characters of a piece in the order in which fontkit draws the piece correctly.
 * fontkit reverses a text whose first letter is right-to-left, and never mirrors brackets.
 */
function toDrawnOrder(text: string, level: number): string {
  const isOdd = level % 2 === 1
  const mirrored = isOdd ? [...text].map((each) => bidi.getMirroredCharacter(each) ?? each) : [...text]
  const first = [...text].find((each) => !neutral.test(each))
  const isDrawnRightToLeft = first !== undefined && rightToLeft.test(first)
  return (isOdd === isDrawnRightToLeft ? mirrored : mirrored.reverse()).join('')
}

/**
 * Puts the pieces of a line in visual order, by the rules L1 and L2 of the Unicode Bidirectional
 * Algorithm.
 */
export function reorderLine(line: PdfLine): void {
  const levels = line.inlines.map(({ level = 0 }) => level)
  const highest = Math.max(0, ...levels)
  if (highest === 0) return
  trimEnd(line)
  const ordered = line.inlines.map((inline, index) => ({ inline, level: levels[index] ?? 0 }))
  for (let level = highest; level > 0; level--) {
    for (let from = 0; from < ordered.length; from++) {
      let to = from
      while (to < ordered.length && (ordered[to]?.level ?? 0) >= level) to++
      if (to - from > 1) ordered.splice(from, to - from, ...ordered.slice(from, to).reverse())
      from = to
    }
  }
  line.inlines = ordered.map(({ inline }) => inline)
  let x = 0
  for (const inline of line.inlines) {
    inline.x = x
    x += inline.width
  }
}

/** Removes the trailing space of a line and its width. */
function trimEnd(line: PdfLine): void {
  const last: PdfInline | undefined = line.inlines.at(-1)
  if (!last || last.trailingCut === 0) return
  last.text = last.text.trimEnd()
  last.width -= last.trailingCut
  line.inlineWidths -= last.trailingCut
  last.trailingCut = 0
  line.trailingCut = 0
}
