// Chooses the statements that the server keeps prepared. Planning a list with its relations takes
// milliseconds and running it takes tenths of one, so the plan of a frequent statement is kept.

import { LRUCache } from 'lru-cache'

/** A statement gets a name with this use, because filters make many statements that come once. */
const usesBeforeName = 3
/** Statements whose uses are counted. */
const maxCounted = 2_000
/** A plan takes up to some hundred kilobytes of the server, for each connection. */
const maxPerConnection = 100

export class StatementNames {
  readonly #counted = new LRUCache<string, { name: string; uses: number }>({ max: maxCounted })
  #last = 0

  /**
   * Counts a use of the statement. Returns the name under which the connection shall prepare it;
   * undefined when it shall not. `prepared` are the names that the connection has prepared.
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
