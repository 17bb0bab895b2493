// Folds texts for comparison: Unicode NFC, then lower case. Writes store the folded text in
// `<column>_key`. In SQLite, the SQL function `fold` calls `caseFold`, so SQL and TypeScript agree.

export function caseFold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

/**
 * Returns the digits of a phone number, for comparison. In SQLite, the SQL function `digits` calls
 * this function.
 */
export const digitsOf = (text: string): string => text.replace(/\D/g, '')
