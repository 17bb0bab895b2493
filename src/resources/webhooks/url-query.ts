// Splits the URL of a webhook into address and query parameters. Query parameters may be
// secrets, so the column query_params_sealed stores them encrypted. Placeholders such as {%
// lead.title %} stay as the user wrote them.
const placeholderPattern = /(\{%[^%]*%\})/

/**
 * Encloses the number that replaces a placeholder while the URL is split. Text of a request never
 * contains this character.
 */
const mark = '\u0000'

export interface QueryParameter {
  key: string
  value: string
}

/** Returns the address without its query, and the decoded query parameters. */
export function splitQuery(url: string): { address: string; query: QueryParameter[] } {
  const parts = url.split(placeholderPattern)
  const placeholders = parts.filter((_part, index) => index % 2 === 1)
  // A placeholder may contain ? and &, so a number replaces the placeholder while the URL is split.
  const plain = parts.map((part, index) => (index % 2 === 1 ? `${mark}${(index - 1) / 2}${mark}` : part)).join('')
  const restored = (text: string): string =>
    text
      .split(mark)
      .map((part, index) => (index % 2 === 1 ? (placeholders[Number(part)] ?? '') : part))
      .join('')
  const [beforeHash = ''] = plain.split('#')
  const at = beforeHash.indexOf('?')
  if (at < 0) return { address: url, query: [] }
  const query = beforeHash
    .slice(at + 1)
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair): QueryParameter => {
      const [key = '', ...value] = pair.split('=')
      return { key: restored(decoded(key)), value: restored(decoded(value.join('='))) }
    })
  return { address: restored(beforeHash.slice(0, at) + plain.slice(beforeHash.length)), query }
}

function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}
