// Chooses the statements that stay prepared on the server. Planning a list query with its joins
// takes milliseconds, and running it takes tenths of a millisecond, so frequent statements keep
// their plan.

import { LRUCache } from 'lru-cache'

/** A statement is prepared at this use. Most combinations of filters occur only once. */
const usesBeforeName = 3
/** The maximum number of statements whose uses are counted. */
const maxCounted = 2_000
/**
 * The maximum number of prepared statements per connection. Each plan takes up to some hundred
 * kilobytes of server memory.
 */
const maxPerConnection = 100

export class StatementNames {
  readonly #counted = new LRUCache<string, { name: string; uses: number }>({ max: maxCounted })
  #last = 0

  /**
   * Counts a use of the statement. Returns the name to prepare it with, or undefined when it must
   * not be prepared. `prepared` is the set of names that the connection has prepared.
   */
  use(text: string, prepared: Set<string>): string | undefined {
    let counted = this.#counted.get(text)
    if (counted === undefined) {
      counted = { name: `accord_${++this.#last}`, uses: 0 }
      this.#counted.set(text, counted)
    }
    counted.uses += 1
    if (prepared.has(counted.name)) return counted.name
    if (counted.uses < usesBeforeName || prepared.size >= maxPerConnection) return undefined
    prepared.add(counted.name)
    return counted.name
  }
}
