// The errors of a submission in the language of the form. The rules say their errors in English.
// The English texts `error.…` are these sentences, so they are the key to the other languages.
import { Problem } from '../../kernel/errors.ts'
import type { TextKey, Texts, TextValues } from '../../texts/texts.ts'

type ErrorKey = Extract<TextKey, `error.${string}`>

/** Runs `work` and translates the errors of its Problem. */
export async function inLanguage<T>(texts: Texts, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem) || !error.more.errors) throw error
    const { englishMessages, textKeys } = await import('../../texts/texts.ts')
    const keys = textKeys.filter((key): key is ErrorKey => key.startsWith('error.'))
    const say = (sentence: string): string => {
      for (const key of keys) {
        const values = argumentsIn(sentence, englishMessages[key])
        if (values) return texts.say(key, values)
      }
      return texts.language === 'en' ? sentence : texts.say('error.invalid')
    }
    const { errors, ...more } = error.more
    throw new Problem(error.code, error.message, {
      ...more,
      errors: Object.fromEntries(Object.entries(errors).map(([field, all]) => [field, [...new Set(all.map(say))]])),
      cause: error,
    })
  }
}

/** Returns the arguments with which the message becomes the sentence, or undefined. */
function argumentsIn(sentence: string, message: string): TextValues | undefined {
  const parts = message.split(/\{(\w+)\}/)
  const pattern = parts
    .map((part, index) => (index % 2 === 0 ? part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&') : `(?<${part}>.{1,200})`))
    .join('')
  const found = new RegExp(`^${pattern}$`, 'su').exec(sentence)
  return found ? { ...found.groups } : undefined
}
