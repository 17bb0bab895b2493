// "Did you mean …?": finds the valid word nearest to a misspelled one (DOMAIN 3.4: edit distance of
// at most 2).
import { distance } from 'fastest-levenshtein'

export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = 3
  for (const candidate of known) {
    // The difference in length is a lower bound of the edit distance and is cheap to compute for a
    // long word.
    if (Math.abs(word.length - candidate.length) >= least) continue
    const away = distance(word.toLowerCase(), candidate.toLowerCase())
    if (away < least) {
      least = away
      best = candidate
    }
  }
  return best
}
