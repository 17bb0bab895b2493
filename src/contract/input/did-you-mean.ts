// "Did you mean …?": the known word nearest to a misspelt one (DOMAIN 3.4: edit distance of at most 2).
import { distance } from 'fastest-levenshtein'

export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = 3
  for (const candidate of known) {
    // the difference in length is the least the distance can be, and costs nothing however long the word is
    if (Math.abs(word.length - candidate.length) >= least) continue
    const away = distance(word.toLowerCase(), candidate.toLowerCase())
    if (away < least) {
      least = away
      best = candidate
    }
  }
  return best
}
