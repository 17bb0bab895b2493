// Splits cells with several values: e-mail addresses, telephone numbers, tags and options. The
// separators are those of other programs and of people.

/** The separator of Accord and of Google. A cell with one of them has no other separator. */
const own = /\||\s:::\s|\s:::$/

const filled = (parts: readonly string[]): string[] => parts.map((each) => each.trim()).filter((each) => each !== '')

/** Splits at each of the characters. */
const splitAt = (text: string, separators: string): string[] =>
  [...separators].reduce((parts, separator) => parts.flatMap((part) => part.split(separator)), [text])

const quotes: Readonly<Record<string, string>> = { '"': '"' }
const brackets: Readonly<Record<string, string>> = { ...quotes, '<': '>', '(': ')' }

/** Splits at the characters outside quotation marks and brackets. */
function splitOutside(text: string, separators: string, closingOf = brackets): string[] {
  const parts: string[] = []
  let part = ''
  let closing = ''
  for (const char of text) {
    if (closing !== '') closing = char === closing ? '' : closing
    else closing = closingOf[char] ?? ''
    if (closing === '' && separators.includes(char)) {
      parts.push(part)
      part = ''
    } else part += char
  }
  // A bracket that stays open is a character of the text.
  return closing === '' ? [...parts, part] : splitAt(text, separators)
}

/** Splits names. Mailchimp quotes names, because they may have commas. */
export const splitNames = (cell: string): string[] => {
  if (own.test(cell)) return filled(cell.split(own))
  if (/^\s*"[^"]*"\s*([,;\r\n]|$)/.test(cell))
    return filled(splitOutside(cell, ',;\r\n', quotes).map((part) => part.trim().replace(/^"(.*)"$/s, '$1')))
  return filled(cell.split(/[,;\r\n]|\s\/\s/))
}

/** Returns the first of several names in a cell such as `Ann (a@x); Bob (b@x)`. */
export const firstIn = (cell: string): string => {
  // A semicolon may end an HTML entity such as `&amp;`.
  const first = cell.split(/(?<!&#?\w{1,10});|\|/)[0]?.trim() ?? ''
  return first === '' ? cell.trim() : first
}

/** Splits addresses, and returns `a@x` for `Ann <a@x>`, `Ann (a@x)` and `mailto:a@x`. */
export function splitAddresses(cell: string): string[] {
  const parts = filled(own.test(cell) ? cell.split(own) : splitOutside(cell, ',;\r\n'))
  return parts
    .flatMap((part) => (!part.includes('<') && areAddresses(part.split('/')) ? filled(part.split('/')) : part))
    .flatMap((part) => (areAddresses(part.split(/\s+/)) ? part.split(/\s+/) : part))
    .filter((part, index, all) => part.includes('@') || addressInBrackets(all[index + 1] ?? '') === null)
    .map(addressIn)
}

const areAddresses = (parts: readonly string[]): boolean => parts.length > 1 && parts.every(isAddress)
const isAddress = (text: string): boolean => /^[^\s@]+@[^\s@]+$/.test(text.trim())

/** Returns the place and the address of `<a@x>` or `(a@x)` at the end of a text, or null. */
function addressInBrackets(text: string): { at: number; address: string } | null {
  const end = text.trimEnd()
  const at = Math.max(end.lastIndexOf('<'), end.lastIndexOf('('))
  if (at < 0 || !/[>)]$/.test(end)) return null
  const address = end
    .slice(at + 1, -1)
    .trim()
    .replace(/^mailto:/i, '')
  return isAddress(address) ? { at, address } : null
}

/** Returns the address of `Ann <a@x>`, or the text if it has no such form. */
export const addressIn = (text: string): string =>
  addressInBrackets(text)?.address ?? text.replace(/^mailto:/i, '').trim()

/** Returns the name of `Ann <a@x>` without quotation marks; an empty text for an address alone. */
export function nameIn(text: string): string {
  const before = text.slice(0, addressInBrackets(text)?.at).trim()
  return isAddress(before) ? '' : before.replace(/^"(.*)"$/, '$1').trim()
}

const extension = /^(?:ext|x|extension|durchwahl|dw|poste|int|anexo|#)\b\.?\s*\d/i
const digitsIn = (text: string): number => text.replace(/\D/g, '').length

/** Splits numbers. A part that cannot be a number of its own belongs to the number before it. */
export function splitNumbers(cell: string): string[] {
  if (own.test(cell)) return filled(cell.split(own))
  const numbers: string[] = []
  for (const part of filled(cell.split(/[;\r\n]/))) {
    const pieces = part.split(/(,|\/)/)
    let number = pieces[0] ?? ''
    for (let at = 1; at < pieces.length; at += 2) {
      const [separator = '', next = ''] = [pieces[at], pieces[at + 1]]
      const isOwn = digitsIn(next) >= 6 && digitsIn(number) >= 6 && !extension.test(next.trim())
      if (isOwn) numbers.push(number)
      number = isOwn ? next : `${number}${separator}${next}`
    }
    numbers.push(number)
  }
  return filled(numbers)
}
