// The languages of an installation: the shipped ones, and those in the folder `messages` of the
// data folder. The first use reads the files; a change of them needs a restart.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { canonicalTag, withParents } from './tags.ts'
import type { Messages, TextKey, Texts } from './texts.ts'

type Table = Readonly<Record<string, string>>

export interface Languages {
  /**
   * Returns the texts of the first wanted language that has some, or else of the installation. A
   * tag without a region is written as in the installation, if that has the same language. The
   * installation may have a locale without texts: its texts are English, its formats are not.
   */
  pick(wanted: readonly (string | null | undefined)[], installation: string): Promise<Texts>
}

export const messagesFolder = (dataDir: string): string => join(dataDir, 'messages')

export function createLanguages(dataDir: string): Languages {
  let loading: ReturnType<typeof load> | undefined
  return {
    async pick(wanted, installation) {
      loading ??= load(dataDir)
      const { textsIn, tableOf, tables } = await loading
      const own = canonicalTag(installation) ?? 'en'
      const isKnown = (tag: string): boolean => withParents(tag).some((each) => tables.has(each))
      const chosen = wanted.map((tag) => canonicalTag(tag ?? '')).find((tag) => tag !== null && isKnown(tag)) ?? own
      const locale = withParents(own).includes(chosen) ? own : chosen
      const language = withParents(locale).find((each) => tables.has(each)) ?? 'en'
      return textsIn({ language, locale, messages: tableOf(language) })
    },
  }
}

/** Returns a sentence for each mistake in the message files of the data folder. */
export const messageProblems = async (dataDir: string): Promise<string[]> =>
  existsSync(messagesFolder(dataDir)) ? (await load(dataDir)).problems : []

async function load(dataDir: string) {
  const { textsIn, shipped, englishMessages, argumentsOf } = await import('./texts.ts')
  const tables = new Map<string, Table>(shipped)
  const problems: string[] = []
  const folder = messagesFolder(dataDir)
  for (const name of existsSync(folder) ? readdirSync(folder).sort() : []) {
    if (!name.endsWith('.json')) continue
    const report = (sentence: string): void => void problems.push(`${join(folder, name)}: ${sentence}`)
    const tag = canonicalTag(basename(name, '.json'))
    if (tag === null) report('the name must be a language tag such as nl.json or de-AT.json.')
    else tables.set(tag, { ...tables.get(tag), ...usable(readTable(join(folder, name), report), tag, report) })
  }

  function usable(table: Record<string, unknown>, tag: string, report: (sentence: string) => void): Table {
    return Object.fromEntries(
      Object.entries(table).filter((entry): entry is [TextKey, string] => {
        const [key, text] = entry
        const problem = problemOf(key, text, tag)
        if (problem !== null) report(`${key} ${problem}`)
        return problem === null
      }),
    )
  }

  function problemOf(key: string, text: unknown, tag: string): string | null {
    if (!Object.hasOwn(englishMessages, key)) return 'is not a key of a text.'
    if (typeof text !== 'string' || text.trim() === '') return 'must be a text.'
    try {
      const known = argumentsOf(englishMessages[key as TextKey])
      const strange = argumentsOf(text, tag).filter((each) => !known.includes(each))
      return strange.length === 0 ? null : `has {${strange[0]}}, which is not an argument of this text.`
    } catch (cause) {
      return `is not a message of ICU MessageFormat: ${cause instanceof Error ? cause.message : String(cause)}.`
    }
  }

  const merged = new Map<string, Messages>()
  const tableOf = (language: string): Messages => {
    const chain = withParents(language).toReversed()
    const table = merged.get(language) ?? Object.assign({}, englishMessages, ...chain.map((each) => tables.get(each)))
    merged.set(language, table)
    return table
  }
  return { textsIn, tables, tableOf, problems }
}

/** Reads a file, which may begin with a byte order mark. Returns no texts for a damaged file. */
function readTable(path: string, report: (sentence: string) => void): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8').replace(/^\ufeff/, ''))
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as Record<string, unknown>
    report('must be an object of texts by key.')
  } catch (cause) {
    report(`cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
  return {}
}
