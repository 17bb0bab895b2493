// The names of countries in a language.
import { countryCodes } from '../contract/input/formats.ts'

const names = new Map<string, Intl.DisplayNames>()

/** Returns the name of a country in a language, or else its code. */
export function countryName(code: string, { language }: { language: string }): string {
  const known = names.get(language) ?? new Intl.DisplayNames([language, 'en'], { type: 'region' })
  names.set(language, known)
  return known.of(code) ?? code
}

const lists = new Map<string, readonly (readonly [code: string, name: string])[]>()

/** Returns the codes and names of all countries, in the order of the language. */
export function countriesOf(texts: { language: string }): readonly (readonly [code: string, name: string])[] {
  const known = lists.get(texts.language)
  if (known !== undefined) return known
  const { compare } = new Intl.Collator([texts.language, 'en'])
  const list = [...countryCodes]
    .map((code) => [code, countryName(code, texts)] as const)
    .sort(([, one], [, other]) => compare(one, other))
  lists.set(texts.language, list)
  return list
}
