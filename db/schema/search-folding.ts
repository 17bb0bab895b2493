// Folds texts for search, so that a query finds a text whatever its accents, apostrophes and
// widths. The parameter `q`, the search, imports and the order of lists share these rules. SQLite
// calls the functions of this file, and db/postgres/search-folding.ts builds its SQL from the same
// tables.

import { caseFold } from './case-folding.ts'

/** Every form of the apostrophe that people type in names. */
export const apostrophes = "'`´\u02b9-\u02bf\u02c8\u055a\u05f3\u1fbd\u1fbf\u2018-\u201b\u2032\uff07\uff40"

/** Characters that separate words, as the inside of a character class. */
export const blanks = '\\u0002-\\u0020\\u0080-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'

/**
 * Characters without a meaning for search, as the inside of a character class: accents of Latin,
 * Greek and Cyrillic, vowel points of Hebrew, Arabic and Syriac, and invisible characters. Vowel
 * signs of Indic scripts and voice marks of Japanese stay, because they make other words.
 */
export const ignored =
  '\\u00ad\\u00b7\\u0300-\\u036f\\u0483-\\u0487\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7' +
  '\\u0610-\\u061a\\u061c\\u0621\\u0640\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e4\\u06e7\\u06e8\\u06ea-\\u06ed' +
  '\\u0711\\u0730-\\u074a\\u180b-\\u180e\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f' +
  '\\u20d0-\\u20f0\\ufe00-\\ufe0f\\ufe20-\\ufe2f\\ufeff'

/** Letters that Unicode does not decompose, and the plain letters that people type for them. */
const plainLetters: Readonly<Record<string, string>> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ŧ: 't',
  ı: 'i',
  ĸ: 'k',
  ŋ: 'n',
  ƀ: 'b',
  ɨ: 'i',
  ς: 'σ',
  ґ: 'г',
  ٱ: 'ا',
  ى: 'ي',
  ی: 'ي',
  ک: 'ك',
  ة: 'ه',
  ہ: 'ه',
  ھ: 'ه',
  '\u2010': '-',
  '\u2011': '-',
  '\u2012': '-',
  '\u2013': '-',
  '\u2014': '-',
  '\u2015': '-',
  '\u2212': '-',
  '“': '"',
  '”': '"',
  '„': '"',
  '«': '"',
  '»': '"',
}

/** The zero of each script whose ten digits people use in numbers. */
const zeros = [
  0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0e50, 0x0ed0,
  0x0f20, 0x1040, 0x17e0, 0x1810,
]

const digits = zeros.flatMap((zero) =>
  Array.from({ length: 10 }, (_, digit): [string, string] => [String.fromCodePoint(zero + digit), String(digit)]),
)

/** Pairs of one character and the character that replaces it. */
export const replacements: readonly (readonly [string, string])[] = [...Object.entries(plainLetters), ...digits]

/** Pairs of one letter and the letters that replace it. */
export const expansions: readonly (readonly [string, string])[] = [
  ['ß', 'ss'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['þ', 'th'],
]

/** Scripts that write words without blanks between them, as the inside of a character class. */
export const unspaced =
  '\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u3007\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff' +
  '\\uac00-\\ud7a3\\uf900-\\ufaff'

/** Returns whether the text has a character of a script that writes no blanks between words. */
export const hasUnspaced = (text: string): boolean => new RegExp(`[${unspaced}]`).test(text)

const anyApostrophe = new RegExp(`[${apostrophes}]`, 'g')
const anyIgnored = new RegExp(`[${ignored}]`, 'g')
const anyBlanks = new RegExp(`[${blanks}]+`, 'g')
const anyUnspaced = new RegExp(`[${unspaced}]`, 'g')
const plain = new Map([...replacements, ...expansions])
const anyReplaced = new RegExp(`[${[...plain.keys()].join('')}]`, 'g')
const beyondAscii = /[^\0-\x7f]/

/** Folds a text like `searchFold`, but keeps each apostrophe as `'`. */
function foldKeepingApostrophes(text: string): string {
  if (!beyondAscii.test(text)) return text.replaceAll('`', "'").toLowerCase().replace(anyBlanks, ' ').trim()
  return text
    .replace(anyApostrophe, "'")
    .normalize('NFKD')
    .toLowerCase()
    .replace(anyIgnored, '')
    .replace(anyReplaced, (letter) => plain.get(letter) ?? letter)
    .normalize('NFC')
    .replace(anyBlanks, ' ')
    .trim()
}

/**
 * Returns the form of a text that search compares: lower case, without accents, apostrophes and
 * invisible characters, with one blank between words. `O’Connor` and `OCONNOR` give the same.
 */
export const searchFold = (text: string): string => foldKeepingApostrophes(text).replaceAll("'", '')

/**
 * Returns the ASCII digits of a text. In SQLite, the SQL function `digits` calls this function, and
 * PostgreSQL has `accord_digits`.
 */
export const digitsOf = (text: string): string => searchFold(text).replace(/\D/g, '')

/**
 * The number of characters of a text that its key covers. A database index can hold no longer keys,
 * and no name is longer. Only subjects of e-mails are, and only their order depends on the key.
 */
const maxKeyLength = 255
/** Separates the two parts of a key. It sorts before every character of a text. */
export const keySeparator = '\u0001'

const cut = (text: string): string => (text.length <= maxKeyLength ? text : [...text].slice(0, maxKeyLength).join(''))

/**
 * Returns the content of a `_key` column: the folded text, and behind it the text in lower case if
 * that differs. So the order of the keys ignores accents, `like` finds the folded text, and two
 * keys are equal only if the texts differ in nothing but case.
 */
export function textKey(text: string): string {
  const exact = cut(caseFold(text))
  const folded = cut(searchFold(text))
  return folded === exact ? exact : `${folded}${keySeparator}${exact}`
}

/** Returns the folded part of a key. */
export const foldedPartOf = (key: string): string => key.split(keySeparator, 1)[0] ?? key

const spaced = (folded: string): string =>
  folded
    .replace(anyUnspaced, ' $& ')
    .replace(/[^\p{L}\p{Nd}]+/gu, ' ')
    .trim()

/**
 * Returns the words of a text for the word index, separated by one blank. A text without blanks,
 * such as Chinese, gives each character as a word. A name such as `O’Connor` gives `oconnor`, and
 * `connor` at the end.
 */
export function searchWords(text: string): string {
  const folded = foldKeepingApostrophes(text)
  if (!folded.includes("'")) return spaced(folded)
  const [first, ...rest] = folded.split("'")
  const parts = rest.map((part) => /^[\p{L}\p{Nd}]*/u.exec(part)?.[0] ?? '')
  return spaced(`${first}${rest.join('')} ${parts.join(' ')}`)
}

/** Returns the words of a part of a query, separated by one blank. The index has them in a row. */
export const searchPhrase = (part: string): string => spaced(searchFold(part))

/**
 * Returns the folded parts of a query, which blanks separate. A part without letters and digits
 * counts only in a query that has nothing else.
 */
export function queryParts(query: string): string[] {
  const parts = query.split(new RegExp(`[\\s${blanks}]+`)).filter(Boolean)
  const folded = [...new Set(parts.map((part) => searchFold(part) || caseFold(part)))]
  const words = folded.filter((part) => searchPhrase(part) !== '')
  return words.length > 0 ? words : folded
}
