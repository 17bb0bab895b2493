// The one rule for comparing names: NFC, then lower case. Writers fill `<column>_key` with it, SQLite's SQL function
// `fold` calls it. It lives apart from the dialects because it is the same on every engine.

export function caseFold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

/** A telephone number as it is compared: its digits. SQLite's function `digits` is this. */
export const digitsOf = (text: string): string => text.replace(/\D/g, '')
