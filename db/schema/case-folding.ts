// The rule for comparing names: NFC, then lower case. Writes fill `<column>_key` with it, and
// SQLite's SQL function `fold` calls it. The rule is the same on every engine.

export function caseFold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

/** The digits of a phone number, for comparing. SQLite's SQL function `digits` calls it. */
export const digitsOf = (text: string): string => text.replace(/\D/g, '')
