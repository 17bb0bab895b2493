// The index of the search in the documentation, beside the outline of all operations: sections of
// guides, problem codes, events, and the words of descriptions. Each text is a list of its distinct
// words, without those that the entry has elsewhere, so that the index stays small.
import { problemCodes } from '../../contract/output/problem-codes.ts'
import { type Guide, guides, guideText, headingId } from './guides.ts'
import { synonyms } from './search-synonyms.ts'
import { operationsOf, type ServedDocument } from './served-document.ts'

/** Words that say nothing about a page. The search drops them from a query, too. */
const emptyWords =
  'a about all also an and any api are as at be but by can do does each for from get has have how i if in into is it its ' +
  'me my no not of on one only or our so such that the their them then there these this to us use want was we what ' +
  'when where which who why will with without you your'
const empty = new Set(emptyWords.split(' '))

interface Section {
  /** The id of the heading; empty for the beginning of the guide. */
  id: string
  title: string
  words: string
}

export interface WordIndex {
  guides: { name: string; title: string; summary: string; sections: Section[] }[]
  codes: { code: string; status: number; meaning: string; words: string }[]
  /** The names of the events, such as `lead.won`. */
  events: string[]
  /** The words of the description of an operation, by operationId. */
  descriptions: Record<string, string>
  synonyms: Readonly<Record<string, string>>
  empty: string[]
}

/** Returns the distinct words of a text that `known` does not have, joined by blanks. */
function wordsOf(text: string, known = ''): string {
  const has = new Set(known.toLowerCase().match(/[\p{L}\p{N}]+/gu))
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]{2,40}/gu) ?? []
  return [...new Set(words)].filter((word) => !empty.has(word) && !has.has(word)).join(' ')
}

/** Links and generated parts are not words of a guide. */
const withoutLinks = (text: string): string =>
  text.replace(/\]\([^)]{0,300}\)/g, ']').replace(/https?:\/\/\S{1,300}|^\{\{\w+\}\}$/gm, ' ')

function sectionsOf({ name, title }: Guide): Section[] {
  const text = withoutLinks(guideText(name))
  // The changes of all versions would be half of the index.
  if (name === 'changes') return []
  return text.split(/^## /m).map((part, at) => {
    const [first = '', ...lines] = part.split('\n')
    const heading = at === 0 ? title : first
    return {
      id: at === 0 ? '' : headingId(first),
      title: heading,
      words: wordsOf(lines.join('\n'), `${title} ${heading}`),
    }
  })
}

export function wordIndex(contract: ServedDocument): WordIndex {
  const operations = operationsOf(contract).map(({ operation }) => operation)
  const codes = Object.entries(problemCodes).map(([code, [status, meaning, advice]]) => ({
    code,
    status,
    meaning,
    words: wordsOf(advice, meaning),
  }))
  const described = operations.map(
    ({ operationId, summary, description = '' }) => [operationId, wordsOf(withoutLinks(description), summary)] as const,
  )
  return {
    guides: guides.map((guide) => ({ ...guide, sections: sectionsOf(guide) })),
    codes,
    events: [...new Set(operations.flatMap((each) => each['x-events'] ?? []))],
    descriptions: Object.fromEntries(described.filter(([, words]) => words !== '')),
    synonyms,
    empty: [...empty],
  }
}
