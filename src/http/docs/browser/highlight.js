// @ts-check
// Splits JSON into colored pieces. Swagger UI's highlighter takes longer than the rest of an
// operation.

/** Longer texts are not colored. */
const maxLength = 30_000

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g

/**
 * @param {string} text
 * @returns {{ kind: string, text: string }[]} The text in pieces; `kind` is a class, or empty.
 */
export function piecesOf(text) {
  if (text.length > maxLength || !/^\s*[[{]/.test(text)) return [{ kind: '', text }]
  const pieces = []
  let last = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon, word] = match
    if (match.index > last) pieces.push({ kind: '', text: text.slice(last, match.index) })
    const kind = string ? (colon ? 'key' : 'string') : word ? 'word' : 'number'
    pieces.push({ kind, text: whole })
    last = match.index + whole.length
  }
  pieces.push({ kind: '', text: text.slice(last) })
  return pieces
}
