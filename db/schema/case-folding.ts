// Folds texts that must be the same except for case: Unicode NFC, then lower case. Uniqueness,
// addresses and exact filters use it. In SQLite, the SQL function `fold` calls `caseFold`, so SQL
// and TypeScript agree. What users search is folded further (search-folding.ts).

export function caseFold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}
