// Reads countries as ISO 3166-1 alpha-2 codes: names in English, in the installation's language and
// in other languages of exports, and codes of two or three letters.
import { fold } from '../../../kernel/values/format.ts'

/** Converts the text of a country to its code. Any other text stays unchanged. */
export type CountryReader = (text: string) => string

const readers = new Map<string, CountryReader>()

const keyOf = (text: string): string =>
  fold(text.trim())
    .normalize('NFKD')
    .replaceAll(/[\p{M}.]/gu, '')
    .replace(/^the /, '')
    .replaceAll(/[\s-]+/g, ' ')

/** Names that people use for a country and that no list of countries has. */
const usual: Readonly<Record<string, string>> = {
  england: 'GB',
  scotland: 'GB',
  wales: 'GB',
  'northern ireland': 'GB',
  holland: 'NL',
  america: 'US',
  'viet nam': 'VN',
  'korea republic of': 'KR',
}

/**
 * Further languages whose names count where English and the language of the installation have none.
 */
const others = 'de fr es it pt nl pl sv da nb fi cs sk hu ro tr ru uk el ja zh ko ar he'.split(' ')

/** Returns the reader for a language. Loads the lists of countries with the first import. */
export async function countryReader(locale: string): Promise<CountryReader> {
  const known = readers.get(locale)
  if (known) return known
  const names = await namesOf(locale)
  const reader = (text: string): string => names.get(keyOf(text)) ?? text
  readers.set(locale, reader)
  return reader
}

/** Returns the code of each country by its names and its code of three letters. */
async function namesOf(locale: string): Promise<ReadonlyMap<string, string>> {
  const { default: codes } = await import('i18n-iso-countries/codes.json', { with: { type: 'json' } })
  const { default: english } = await import('i18n-iso-countries/langs/en.json', { with: { type: 'json' } })
  const names = new Map<string, string>(Object.entries(usual))
  const all = codes as unknown as readonly (readonly [string, string, string, string])[]
  for (const [code, three] of all) {
    names.set(fold(three), code)
    for (const each of ['en', locale])
      for (const style of ['long', 'short'] as const) {
        const name = new Intl.DisplayNames([each], { type: 'region', style }).of(code)
        if (name !== undefined && name !== code) names.set(keyOf(name), code)
      }
  }
  for (const [code, list] of Object.entries(english.countries))
    for (const name of [list].flat()) if (!names.has(keyOf(name))) names.set(keyOf(name), code)
  for (const language of others) {
    const display = new Intl.DisplayNames([language], { type: 'region', fallback: 'none' })
    for (const [code] of all) {
      const key = keyOf(display.of(code) ?? '')
      if (key !== '' && !names.has(key)) names.set(key, code)
    }
  }
  for (const [code] of all) names.set(fold(code), code)
  return names
}
