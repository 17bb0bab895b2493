// Finds what `JSON.parse` would lose silently: the digits of numbers that a float cannot represent
// exactly, and the first values of keys that an object has twice. Also reads numbers from texts.

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

const wholeNumber = /^-?(?:0|[1-9]\d{0,15})$/
const decimalNumber = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,20})?$/

/**
 * Reads a number from a text of a body, a form or a query. Returns undefined for other notations,
 * such as `1e3`, `0x10`, `1,5`, `+1` and `007`, and for a number that a float would round.
 */
export function numberIn(text: string, { isWhole }: { isWhole: boolean }): number | undefined {
  const trimmed = text.trim()
  const isNumber = (isWhole ? wholeNumber : decimalNumber).test(trimmed) && isExactNumber(trimmed)
  return isNumber ? Number(trimmed) : undefined
}

interface Level {
  isList: boolean
  /** The index of the current entry of a list. */
  index: number
  /** Whether the next string is a key. True only in an object. */
  awaitsKey: boolean
  /** The current key of an object. */
  key: string
  /** The keys of an object so far. */
  keys: Set<string>
}

export interface Losses {
  inexact: string[][]
  /** The paths of keys that their object has twice. */
  repeated: string[][]
}

/** Returns the paths of what `JSON.parse` loses of a valid JSON text. Stops after `most` paths. */
export function lossesIn(text: string, most: number): Losses {
  const inexact: string[][] = []
  const repeated: string[][] = []
  const levels: Level[] = []
  const path = (): string[] => levels.map(({ isList, index, key }) => (isList ? String(index) : key))
  const number = /[-+.\deE]+/y
  for (let at = 0; at < text.length && inexact.length + repeated.length < most; at++) {
    const char = text[at] as string
    const level = levels.at(-1)
    if (char === '"') {
      const end = closingQuote(text, at)
      if (level?.awaitsKey) {
        const key = text.slice(at + 1, end)
        level.key = key.includes('\\') ? (JSON.parse(`"${key}"`) as string) : key
        if (level.keys.size === level.keys.add(level.key).size) repeated.push(path())
      }
      at = end
    } else if (char === '{' || char === '[') {
      levels.push({ isList: char === '[', index: 0, awaitsKey: char === '{', key: '', keys: new Set() })
    } else if (char === '}' || char === ']') levels.pop()
    else if (char === ':' && level) level.awaitsKey = false
    else if (char === ',' && level) {
      level.index++
      level.awaitsKey = !level.isList
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      number.lastIndex = at
      const [token = char] = number.exec(text) ?? []
      if (!isExactNumber(token)) inexact.push(path())
      at += token.length - 1
    }
  }
  return { inexact, repeated }
}

function closingQuote(text: string, opening: number): number {
  for (let end = text.indexOf('"', opening + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}
