// The SQL functions of every connection. Triggers, views, indexes and queries call them.

import type { Database } from 'better-sqlite3'
import { caseFold } from '../schema/case-folding.ts'
import { digitsOf, searchFold, searchWords, textKey } from '../schema/search-folding.ts'

const functions: Readonly<Record<string, (text: string) => string>> = {
  fold: caseFold,
  digits: digitsOf,
  search_fold: searchFold,
  search_words: searchWords,
  text_key: textKey,
}

export function withFunctions(database: Database): Database {
  for (const [name, work] of Object.entries(functions))
    database.function(name, { deterministic: true }, (text: unknown) => (typeof text === 'string' ? work(text) : text))
  return database
}
