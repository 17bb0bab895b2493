// Finds the numbers in a JSON text that a float cannot represent exactly. `JSON.parse` rounds them,
// but an amount must never change silently.

/** Returns whether the decimal text survives a conversion to a float and back. */
export function isExactNumber(text: string): boolean {
  if (text.length <= 15 && !/e/i.test(text)) return true
  return decimal(text) === decimal(String(Number(text)))
}

/** Returns the canonical form of a decimal number: its significant digits and a power of ten. */
function decimal(text: string): string | undefined {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  if (whole === '') return undefined
  const digits = whole + fraction
  const first = digits.search(/[1-9]/)
  if (first < 0) return '0'
  let last = digits.length - 1
  while (digits[last] === '0') last--
  return `${sign}${digits.slice(first, last + 1)}e${Number(power) - fraction.length + digits.length - 1 - last}`
}

interface Level {
  isList: boolean
  /** The index of the current entry of a list. */
  index: number
  /** Whether the next string is a key. True only in an object. */
  awaitsKey: boolean
  /** The start and end of the current key of an object, as offsets in the text. */
  key: [from: number, to: number]
}

/**
 * Returns the paths of the numbers in a valid JSON text that a float cannot represent exactly.
 * Stops after `most` paths.
 */
export function inexactNumbers(text: string, most: number): string[][] {
  const found: string[][] = []
  const levels: Level[] = []
  const number = /[-+.\deE]+/y
  for (let at = 0; at < text.length && found.length < most; at++) {
    const char = text[at] as string
    const level = levels.at(-1)
    if (char === '"') {
      const end = closingQuote(text, at)
      if (level?.awaitsKey) level.key = [at, end + 1]
      at = end
    } else if (char === '{' || char === '[') {
      levels.push({ isList: char === '[', index: 0, awaitsKey: char === '{', key: [0, 0] })
    } else if (char === '}' || char === ']') levels.pop()
    else if (char === ':' && level) level.awaitsKey = false
    else if (char === ',' && level) {
      level.index++
      level.awaitsKey = !level.isList
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      number.lastIndex = at
      const [token = char] = number.exec(text) ?? []
      if (!isExactNumber(token))
        found.push(
          levels.map(({ isList, index, key }) => (isList ? String(index) : (JSON.parse(text.slice(...key)) as string))),
        )
      at += token.length - 1
    }
  }
  return found
}

function closingQuote(text: string, opening: number): number {
  for (let end = text.indexOf('"', opening + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}
