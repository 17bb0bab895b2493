// The one rule for comparing names: NFC, then lower case. Writers fill `<column>_key` with it, SQLite's SQL function
// `fold` calls it. It lives apart from the dialects because it is the same on every engine.

export function foldText(text: string): string {
  return text.normalize('NFC').toLowerCase()
}
