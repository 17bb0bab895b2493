// The words for yes and no, in English and some other languages: in cells of imports, in web forms
// and in filters of forms alike.

const yes = 'yes y true t on 1 x ✓ ✔ ja j wahr oui vrai si verdadero vero sim verdadeiro tak prawda ano да'.split(' ')
/** The words for no, in lower case and without accents. */
export const wordsForNo = 'no n false f off 0 nein falsch non faux falso nao nie falsz ne нет'.split(' ')
const flags = new Map([
  ...yes.map((word) => [word, true] as const),
  ...wordsForNo.map((word) => [word, false] as const),
])

/** Converts a word for yes or no to a boolean. Returns undefined for any other text. */
export const flagIn = (text: string): boolean | undefined =>
  flags.get(text.trim().toLowerCase().normalize('NFKD').replaceAll(/\p{M}/gu, ''))
