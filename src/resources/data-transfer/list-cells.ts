// Splits cells with several values: e-mail addresses, telephone numbers, tags and options. The
// separators are those of other programs and of people.

/** The separator of Accord and of Google. A cell with one of them has no other separator. */
const own = /\s*(?:\||\s:::\s|\s:::$)\s*/

/** Longer cells are split only at `|`, because matching their other separators takes too long. */
const maxLength = 8000

const filled = (parts: readonly string[]): string[] => parts.map((each) => each.trim()).filter((each) => each !== '')

/** Splits at the pattern outside quotation marks, angle brackets and round brackets. */
function splitOutside(text: string, separators: string): string[] {
  const parts: string[] = []
  let part = ''
  let closing = ''
  for (const char of text) {
    if (closing !== '') closing = char === closing ? '' : closing
    else if (char === '"') closing = '"'
    else if (char === '<') closing = '>'
    else if (char === '(') closing = ')'
    if (closing === '' && separators.includes(char)) {
      parts.push(part)
      part = ''
    } else part += char
  }
  // A bracket that stays open is a character of the text.
  return closing === '' ? [...parts, part] : text.split(new RegExp(`[${separators}]`))
}

export const splitNames = (cell: string): string[] => {
  if (cell.length > maxLength) return filled(cell.split('|'))
  if (/\||\s:::\s|\s:::$/.test(cell)) return filled(cell.split(own))
  return filled(cell.split(/[,;\r\n]|\s\/\s/))
}

/** Splits addresses, and returns `a@x` for `Ann <a@x>`, `Ann (a@x)` and `mailto:a@x`. */
export function splitAddresses(cell: string): string[] {
  if (cell.length > maxLength) return filled(cell.split('|'))
  const parts = filled(/\||\s:::\s|\s:::$/.test(cell) ? cell.split(own) : splitOutside(cell, ',;\r\n'))
  return parts
    .flatMap((part) => (/@[^/]*\/.*@/.test(part) && !part.includes('<') ? filled(part.split('/')) : part))
    .flatMap((part) => (part.split(/\s+/).every((word) => word.includes('@')) ? part.split(/\s+/) : part))
    .filter((part, index, all) => part.includes('@') || !/[<(][^<>()]*@/.test(all[index + 1] ?? ''))
    .map(addressIn)
}

/** Returns the address of `Ann <a@x>`, or the text if it has no such form. */
export function addressIn(text: string): string {
  if (text.length > maxNamedLength) return text
  const [, address] = /[<(]\s*(?:mailto:)?([^<>()\s]+@[^<>()\s]+)\s*[>)]\s*$/.exec(text) ?? []
  return address ?? text.replace(/^mailto:/i, '').trim()
}

/** Returns the name of `Ann <a@x>` without quotation marks; an empty text for an address alone. */
export const nameIn = (text: string): string =>
  text.length > maxNamedLength
    ? text
    : text
        .replace(/\s*[<(][^<>()]*@[^<>()]*[>)]\s*$/, '')
        .replace(/^"(.*)"$/, '$1')
        .replace(/^\S+@\S+$/, '')
        .trim()

/** The maximum length of a name with an address. */
const maxNamedLength = 500

const extension = /^(?:ext|x|extension|durchwahl|dw|poste|int|anexo|#)\b\.?\s*\d/i
const digitsIn = (text: string): number => text.replace(/\D/g, '').length

/** Splits numbers. A part that cannot be a number of its own belongs to the number before it. */
export function splitNumbers(cell: string): string[] {
  if (cell.length > maxLength) return filled(cell.split('|'))
  if (/\||\s:::\s|\s:::$/.test(cell)) return filled(cell.split(own))
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
