// Finds the valid word that is most similar to a misspelled word, for "Did you mean …?". The edit
// distance is at most 2.
import { distance } from 'fastest-levenshtein'

export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = 3
  for (const candidate of known) {
    // The edit distance is at least the difference in length, which is cheaper to compute.
    if (Math.abs(word.length - candidate.length) >= least) continue
    const away = distance(word.toLowerCase(), candidate.toLowerCase())
    if (away < least) {
      least = away
      best = candidate
    }
  }
  return best
}
