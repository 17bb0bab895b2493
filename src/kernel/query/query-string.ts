// Changes a query string. Commas of the other parameters stay as they were sent, because an encoded
// comma belongs to a value and a plain one separates values.

/** Returns the query string with these parameters, each in its place or at the end. */
export function withParameters(raw: string, replace: Readonly<Record<string, string>>): string {
  const left = new Map(Object.entries(replace))
  const kept = raw.split('&').flatMap((pair) => {
    const [[name, text] = ['', '']] = new URLSearchParams(pair)
    if (pair === '') return []
    if (!Object.hasOwn(replace, name)) return [`${encoded(name)}=${withPlainCommas(pair, text)}`]
    const changed = left.get(name)
    left.delete(name)
    return changed === undefined ? [] : [`${encoded(name)}=${encoded(changed)}`]
  })
  return [...kept, ...[...left].map(([name, text]) => `${encoded(name)}=${encoded(text)}`)].join('&')
}

const encoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)

function withPlainCommas(pair: string, text: string): string {
  if (!text.includes(',')) return encoded(text)
  const values = pair.slice(pair.indexOf('=') + 1).split(',')
  return values.map((each) => encoded(new URLSearchParams(`=${each}`).get('') ?? '')).join(',')
}
