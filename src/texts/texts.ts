// The texts of one language, in ICU MessageFormat. `en.json` holds all keys. The other files of
// `messages/` are the shipped translations.
import { IntlMessageFormat } from 'intl-messageformat'
import german from './messages/de.json' with { type: 'json' }
import english from './messages/en.json' with { type: 'json' }
import spanish from './messages/es.json' with { type: 'json' }
import french from './messages/fr.json' with { type: 'json' }
import { directionOf } from './tags.ts'

export type TextKey = keyof typeof english
export type Messages = Readonly<Record<TextKey, string>>
export type TextValues = Readonly<Record<string, string | number>>

export const shipped = new Map<string, Readonly<Record<string, string>>>(
  Object.entries({ en: english, de: german, fr: french, es: spanish }),
)
export const textKeys = Object.keys(english) as TextKey[]
export const englishMessages: Messages = english

export interface Texts {
  /** The language of the texts, as a BCP 47 tag. */
  language: string
  /** The BCP 47 tag by which dates, numbers and names of countries are written. */
  locale: string
  direction: 'ltr' | 'rtl'
  messages: Messages
  /** Returns a text with its arguments filled in. It is plain text, not HTML. */
  say(key: TextKey, values?: TextValues): string
}

/** Compiled messages by the table that holds them. */
const compiled = new WeakMap<Messages, Map<TextKey, IntlMessageFormat>>()

export function textsIn({ language, locale, messages }: Pick<Texts, 'language' | 'locale' | 'messages'>): Texts {
  const known = compiled.get(messages) ?? new Map<TextKey, IntlMessageFormat>()
  compiled.set(messages, known)
  return {
    language,
    locale,
    direction: directionOf(language),
    messages,
    say(key, values = {}) {
      const format = known.get(key) ?? formatOf(messages[key], language)
      known.set(key, format)
      return String(format.format(values))
    },
  }
}

/** Throws a SyntaxError for a text that is not a message. A text may contain `<`. */
const formatOf = (message: string, language: string): IntlMessageFormat =>
  new IntlMessageFormat(message, language, undefined, { ignoreTag: true })

/** Returns the names of the arguments. Throws a SyntaxError for a text that is not a message. */
export function argumentsOf(message: string, language = 'en'): string[] {
  const names = (elements: ReturnType<IntlMessageFormat['getAst']>): string[] =>
    elements.flatMap((each) => {
      const own = 'value' in each && each.type !== 0 ? [String(each.value)] : []
      const inner = 'options' in each ? Object.values(each.options).flatMap(({ value }) => names(value)) : []
      return [...own, ...inner]
    })
  return [...new Set(names(formatOf(message, language).getAst()))].sort()
}
