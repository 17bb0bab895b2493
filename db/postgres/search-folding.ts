// The SQL functions that fold texts as schema/search-folding.ts does, built from its tables.

import {
  apostrophes,
  blanks,
  expansions,
  ignored,
  keySeparator,
  replacements,
  unspaced,
} from '../schema/search-folding.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const classOf = (inside: string): string => quoted(`[${inside}]`)
const functionOf = (name: string, body: string, isStrict = true): string =>
  `create or replace function ${name} returns text language sql immutable ${isStrict ? 'strict' : ''} parallel safe return ${body}`

const expanded = (text: string): string =>
  expansions.reduce((inner, [from, to]) => `replace(${inner}, ${quoted(from)}, ${quoted(to)})`, text)
const [from, to] = [0, 1].map((side) => quoted(replacements.map((pair) => pair[side]).join('')))
const lowered = `lower(normalize(regexp_replace(content, ${classOf(apostrophes)}, '''', 'g'), nfkd) collate "und-x-icu")`
const withoutMarks = `regexp_replace(${lowered} collate "C", ${classOf(ignored)}, '', 'g')`
const folded = `normalize(${expanded(`translate(${withoutMarks}, ${from}, ${to})`)}, nfc)`
const exact = `left(lower(normalize(content, nfc) collate "und-x-icu"), 255) collate "C"`
const search = 'accord_search_fold(content)'
const key = `left(${search}, 255)`
const parts = `case when strpos(plain, '''') = 0 then ''
  else regexp_replace(plain collate "und-x-icu", '[^'']*''([[:alnum:]]*)[^'']*', '\\1 ', 'g') end`
const spaced = `regexp_replace(replace(plain, '''', '') || ' ' || ${parts}, ${quoted(`([${unspaced}])`)}, ' \\1 ', 'g')`

const isAscii = 'octet_length(content) = length(content)'
const foldedAscii = `lower(replace(content, '\`', '''') collate "C")`
const withoutBlanks = (text: string): string =>
  `btrim(regexp_replace(${text}, ${quoted(`[${blanks}]+`)}, ' ', 'g'), ' ') collate "C"`

/**
 * `accord_plain` keeps apostrophes, and folds an ASCII text in a tenth of the time. PostgreSQL
 * parses the bodies in this order. It runs a `strict` function with a `case` as a call, which takes
 * longer than the body of a function that is not strict. Both return null for null.
 */
export const foldingFunctions = [
  functionOf(
    'accord_plain(content text)',
    `case when ${isAscii} then ${withoutBlanks(foldedAscii)} else ${withoutBlanks(folded)} end`,
    false,
  ),
  functionOf('accord_search_fold(content text)', `replace(accord_plain(content), '''', '') collate "C"`, false),
  functionOf(
    'accord_text_key(content text)',
    `(case when ${key} = ${exact} then ${exact} else ${key} || chr(${keySeparator.codePointAt(0)}) || ${exact} end) collate "C"`,
  ),
  functionOf(
    'accord_words_of(plain text)',
    `btrim(regexp_replace(${spaced} collate "und-x-icu", '[^[:alnum:]]+', ' ', 'g'), ' ')`,
  ),
  functionOf('accord_words(content text)', 'accord_words_of(accord_plain(content))'),
] as const
