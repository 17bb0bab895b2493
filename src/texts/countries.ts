// The names of countries.

const names = new Map<string, Intl.DisplayNames>()

/** Returns the name of a country in a language, or else its code. */
export function countryName(code: string, { language }: { language: string }): string {
  const known = names.get(language) ?? new Intl.DisplayNames([language, 'en'], { type: 'region' })
  names.set(language, known)
  return known.of(code) ?? code
}
