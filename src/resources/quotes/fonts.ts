// The fonts of printed quotes. Roboto (from pdfmake) has Latin, Greek and Cyrillic characters.
// Arabic and Hebrew have one font each. The other fonts are split into slices (files with some of
// its characters), Chinese, Japanese and Korean into about a hundred; only the needed slices are
// read.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { allowMissingAnchors, type LayoutFont, type VirtualFileSystem } from './pdfmake-internals.ts'

const require = createRequire(import.meta.url)

interface Font extends LayoutFont {
  hasGlyphForCodePoint(point: number): boolean
}

const fontkit = require('fontkit') as { create(bytes: Uint8Array): Font }
const subsetFont = require('subset-font') as (
  font: Buffer,
  text: undefined,
  options: { targetFormat: 'truetype'; keepAllGlyphs: true; variationAxes: { wght: number } },
) => Promise<Buffer>

type Face = string
type Faces = Record<'normal' | 'bold' | 'italics' | 'bolditalics', Face>
export type Dictionary = Record<string, Faces>

export interface Fonts {
  /**
   * Returns the name of a font for the character (a code point). Prefers the font `current` if that
   * font has the character.
   */
  of(point: number, current?: string): string
  has(text: string): boolean
  dictionary: Dictionary
}

export const latin = 'Roboto'

const placeOf = (path: string): string => require.resolve(path)
const roboto = (style: string): string =>
  join(dirname(placeOf('pdfmake/package.json')), 'fonts', 'Roboto', `Roboto-${style}.ttf`)
/**
 * Returns the path of a font file for a style. The font packages export no font paths, so the path
 * is built from the location of their code.
 */
const script = (name: string, family: string) => (style: string) =>
  join(dirname(placeOf(`@embedpdf/fonts-${name}`)), '..', 'fonts', `${family}-${style}.ttf`)

const upright = (normal: string, bold: string): Faces => ({ normal, bold, italics: normal, bolditalics: bold })
const [arabic, hebrew] = [script('arabic', 'NotoNaskhArabic'), script('hebrew', 'NotoSansHebrew')]
const bundledFonts: Dictionary = {
  [latin]: {
    ...upright(roboto('Regular'), roboto('Medium')),
    italics: roboto('Italic'),
    bolditalics: roboto('MediumItalic'),
  },
  Arabic: upright(arabic('Regular'), arabic('Bold')),
  Hebrew: upright(hebrew('Regular'), hebrew('Bold')),
}

const opened = new Map<string, Font>()
function openedAt(path: string): Font {
  const known = opened.get(path) ?? fontkit.create(readFileSync(path))
  opened.set(path, known)
  return known
}

/**
 * The font families that are split into slices: simplified and traditional Chinese, Japanese,
 * Korean.
 */
type EastAsian = 'sc' | 'tc' | 'jp' | 'kr'
/** Further families. The first one with a character draws it. */
const others = [
  ...['latin', 'devanagari', 'bengali', 'tamil', 'telugu', 'kannada', 'malayalam', 'gujarati', 'gurmukhi', 'sinhala'],
  ...['thai', 'lao', 'khmer', 'myanmar', 'georgian', 'armenian', 'ethiopic', 'emoji'],
]
const slicesOf = new Map<string, Map<number, string>>()

const fontOf = (family: string): string =>
  family === 'emoji' ? 'noto-emoji' : family === 'latin' ? 'noto-sans' : `noto-sans-${family}`

function slices(family: string): Map<number, string> {
  const known = slicesOf.get(family)
  if (known) return known
  const ranges = require(`@fontsource-variable/${fontOf(family)}/unicode.json`) as Record<string, string>
  const found = new Map<number, string>()
  for (const [name, text] of Object.entries(ranges)) {
    for (const range of text.slice(2).split(/,U\+/i)) {
      const [first = 0, last = first] = range.split('-').map((each) => Number.parseInt(each, 16))
      for (let point = first; point <= last; point++)
        if (!found.has(point)) found.set(point, name.replace(/^\[(\w+)\]$/, '$1'))
    }
  }
  slicesOf.set(family, found)
  return found
}

/**
 * Returns the font families in order of preference, because the families draw many characters
 * differently. A Japanese, Korean or Chinese locale puts its own family first. For other locales,
 * the characters decide: kana put Japanese first, hangul Korean.
 */
function orderOf(locale: string, points: ReadonlySet<number>): readonly string[] {
  const { language, script, region } = new Intl.Locale(locale).maximize()
  const has = (first: number, last: number): boolean => [...points].some((point) => point >= first && point <= last)
  const first: EastAsian =
    language === 'ja'
      ? 'jp'
      : language === 'ko'
        ? 'kr'
        : language === 'zh'
          ? script === 'Hant' || region === 'TW'
            ? 'tc'
            : 'sc'
          : has(0x3041, 0x30ff)
            ? 'jp'
            : has(0xac00, 0xd7a3)
              ? 'kr'
              : 'sc'
  return [...new Set([first, 'sc', 'tc', 'jp', 'kr', ...others])]
}

interface Slice {
  font: Font
  file: string
}
const loaded = new Map<string, Promise<Slice>>()
const weights = { normal: 400, bold: 700 } as const
type Weight = keyof typeof weights

function slice(virtual: VirtualFileSystem, family: string, name: string, weight: Weight): Promise<Slice> {
  const key = `${family}-${name}-${weight}`
  const loading = loaded.get(key) ?? load(virtual, family, name, weight)
  loaded.set(key, loading)
  return loading
}

/**
 * Stores a font slice in the virtual file system from which pdfmake reads. All slices of a family
 * have the same PostScript name, but PDF readers distinguish fonts by that name. So each stored
 * slice gets a unique name.
 */
async function load(virtual: VirtualFileSystem, family: string, slice: string, weight: Weight): Promise<Slice> {
  const path = placeOf(`@fontsource-variable/${fontOf(family)}/files/${fontOf(family)}-${slice}-wght-normal.woff2`)
  // Fixes the weight, because pdfmake cannot embed variable fonts.
  const bytes = await subsetFont(readFileSync(path), undefined, {
    targetFormat: 'truetype',
    keepAllGlyphs: true,
    variationAxes: { wght: weights[weight] },
  })
  const file = `${family}-${slice}-${weight}.ttf`
  virtual.writeFileSync(file, renamed(bytes, `${slice}${weight.charAt(0)}`))
  const font = fontkit.create(bytes)
  allowMissingAnchors(font)
  return { font, file }
}

/**
 * Returns a copy of the font file in which the end of the PostScript name is overwritten with
 * `mark`. The name keeps its length, so the file structure stays valid.
 */
function renamed(font: Buffer, mark: string): Buffer {
  const copy = Buffer.from(font)
  const tables = Array.from({ length: copy.readUInt16BE(4) }, (_, index) => 12 + 16 * index)
  const entry = tables.find((at) => copy.toString('latin1', at, at + 4) === 'name')
  if (entry === undefined) return copy
  const start = copy.readUInt32BE(entry + 8)
  const texts = start + copy.readUInt16BE(start + 4)
  for (let index = 0; index < copy.readUInt16BE(start + 2); index++) {
    const at = start + 6 + 12 * index
    if (copy.readUInt16BE(at + 6) !== postScriptName) continue
    // In the name table of a font, a name for the Macintosh platform has one byte per character. A
    // name for any other platform has two bytes per character.
    const wide = copy.readUInt16BE(at) !== macintosh
    const bytes = Buffer.from(mark, wide ? 'utf16le' : 'latin1')
    if (wide) bytes.swap16()
    bytes.copy(copy, texts + copy.readUInt16BE(at + 10) + copy.readUInt16BE(at + 8) - bytes.length)
  }
  return copy
}
const postScriptName = 6
const macintosh = 1

/**
 * The code points of the characters in a document. `bold` are the code points that are also printed
 * in bold.
 */
export interface CharacterSets {
  all: Set<number>
  bold: Set<number>
}

/** Loads the fonts that have glyphs for the given characters. */
export async function loadFonts(
  virtual: VirtualFileSystem,
  { all: points, bold }: CharacterSets,
  locale: string,
): Promise<Fonts> {
  const dictionary: Dictionary = structuredClone(bundledFonts)
  const names = new Map<number, string>()
  const isIn = (name: string, point: number): boolean => {
    const path = bundledFonts[name]?.normal
    return typeof path === 'string' ? openedAt(path).hasGlyphForCodePoint(point) : names.get(point) === name
  }
  const families = orderOf(locale, points)
  for (const point of points) {
    const simple = point < 0x80 ? latin : Object.keys(bundledFonts).find((name) => isIn(name, point))
    if (simple !== undefined) {
      names.set(point, simple)
      continue
    }
    for (const family of families) {
      const part = slices(family).get(point)
      if (part === undefined) continue
      const name = `${family}-${part}`
      const { font, file } = await slice(virtual, family, part, 'normal')
      if (!font.hasGlyphForCodePoint(point)) continue
      const known = dictionary[name] ?? upright(file, file)
      dictionary[name] = bold.has(point) ? upright(file, (await slice(virtual, family, part, 'bold')).file) : known
      names.set(point, name)
      break
    }
  }
  return {
    of: (point, current) => (current !== undefined && isIn(current, point) ? current : (names.get(point) ?? latin)),
    has: (text) => [...text].every((each) => names.has(each.codePointAt(0) ?? 0)),
    dictionary,
  }
}
