// The address of a webhook without its query: parameters may be secrets, so they are stored with query_params. Placeholders stay as
// they are written, whatever stands in them.
const placeholder = /(\{%[^%]*%\})/

/** Around the number of a placeholder; no text that is sent may hold it. */
const mark = '\u0000'

export interface QueryParameter {
  key: string
  value: string
}

/** An address, and the parameters that its query names. */
export function splitQuery(endPoint: string): { address: string; query: QueryParameter[] } {
  const parts = endPoint.split(placeholder)
  const kept = parts.filter((_part, index) => index % 2 === 1)
  // A placeholder may hold any of the signs that divide a URL.
  const plain = parts.map((part, index) => (index % 2 === 1 ? `${mark}${(index - 1) / 2}${mark}` : part)).join('')
  const restored = (text: string): string =>
    text
      .split(mark)
      .map((part, index) => (index % 2 === 1 ? (kept[Number(part)] ?? '') : part))
      .join('')
  const [beforeHash = ''] = plain.split('#')
  const at = beforeHash.indexOf('?')
  if (at < 0) return { address: endPoint, query: [] }
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
