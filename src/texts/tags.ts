// Language tags (BCP 47).

/**
 * Returns the tag in its canonical form, such as `de-DE` for `de_de`. Returns null when the text
 * has another form. The language need not exist.
 */
export function canonicalTag(text: string): string | null {
  const tag = text.trim().replaceAll('_', '-')
  if (!/^[a-z]{2,3}(-[a-z0-9]{1,8}){0,7}$/i.test(tag) || tag.length > 35) return null
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? null
  } catch {
    return null
  }
}

/** Returns a tag and the more general tags, such as `fr-CA` and `fr`. */
export function withParents(tag: string): string[] {
  const parts = tag.split('-')
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('-'))
}

const rightToLeftScripts: readonly string[] = ['Adlm', 'Arab', 'Hebr', 'Mand', 'Nkoo', 'Rohg', 'Syrc', 'Thaa']

/** Returns the direction of a language, as a value of the HTML attribute `dir`. */
export const directionOf = (tag: string): 'ltr' | 'rtl' =>
  rightToLeftScripts.includes(new Intl.Locale(tag).maximize().script ?? '') ? 'rtl' : 'ltr'
