// "Did you mean …?": the known word nearest to a misspelt one (DOMAIN 3.4: edit distance of at most 2).
import { distance } from 'fastest-levenshtein'

export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = 3
  for (const candidate of known) {
    const away = distance(word.toLowerCase(), candidate.toLowerCase())
    if (away < least) {
      least = away
      best = candidate
    }
  }
  return best
}
