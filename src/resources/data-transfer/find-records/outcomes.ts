// The words that other programs write for the outcome of a deal, in English and some other
// languages.
import { fold } from '../../../kernel/values/format.ts'

export type DealOutcome = 'open' | 'won' | 'lost'

const lost = /\b(lost|closedlost|verloren|perdue?|perdid[oa]|perso|persa|forlorad|abandoned|withdrawn|disqualified)\b/u
const won = /\b(won|closedwon|gewonnen|gagnee?|ganad[oa]|vint[oa]|ganh[oa]|vunnen)\b/u
const open = /^(open|offen|ouverte?|abiert[oa]|apert[oa]|abert[oa]|in progress|active)$/u
/** The numbers of the column `status` in exports of leads. */
const numbers: Readonly<Record<string, DealOutcome>> = { 1: 'open', 2: 'won', 3: 'lost' }
/** The mark of a closed deal in layouts. Without a word for won, such a deal is lost. */
export const closedMark = '(closed)'

/** The mark of a deleted deal in layouts, beside the words of other columns. */
export const deletedMark = '(deleted)'

/** Returns whether the status says that the deal is deleted. */
export const isDeletedStatus = (text: string): boolean =>
  text.includes(deletedMark) ||
  /^(deleted|geloscht|gelöscht|supprimee?|eliminad[oa]|eliminat[oa]|removed|trashed)$/.test(fold(text.trim()))

/** Returns the outcome that a status or the name of a stage says, else undefined. */
export function outcomeIn(text: string): DealOutcome | undefined {
  const plain = fold(text.trim()).normalize('NFKD').replaceAll(/\p{M}/gu, '').replaceAll('_', ' ')
  if (lost.test(plain)) return 'lost'
  if (won.test(plain)) return 'won'
  if (plain.includes(closedMark)) return 'lost'
  return numbers[plain] ?? (open.test(plain) ? 'open' : undefined)
}
