// Folds texts for comparison: Unicode NFC, then lower case. Writes store the folded text in
// `<column>_key`. The SQL function `fold` calls `caseFold`, so SQL and TypeScript agree.

export function caseFold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

/**
 * Returns the digits of a phone number, for comparison. The SQL function `digits` calls `digitsOf`.
 */
export const digitsOf = (text: string): string => text.replace(/\D/g, '')
