// Texts that spreadsheet and mail programs leave in cells: guards of texts, errors of formulas,
// numbers that have lost digits, and names of mail servers.

/** A cell that has no value, although the cell is not empty. */
export interface LostCell {
  message: string
}

const formulaErrors =
  /^#(n\/a|n\/v|nv|ref!|bezug!|wert!|value!|name\?|div\/0!|null!|num!|spill!|calc!|field!|blocked!|connect!|unknown!|getting_data)$/i
const exchangeName = /^\/o=.*\/cn=/i
const hashes = /^#{2,}$/
const dashes = /^([-–—]+|n\/a|n\.a\.|-+none-+|\(none\)|\(blank\)|\(?null\)?)$/i
const emptyDates = /^0{1,4}[/.-]0{1,2}[/.-]0{1,4}(?:[ T]0{1,2}:00(?::00)?)?$/
/** Fractions before the exponent end in digits that the program has dropped. */
const scientific = /^\d(?:[.,]\d+)?e\+?\d{1,2}$/i

/** Removes the guards `="0151"` and `'0151`, which keep a number a text. */
export function withoutGuard(cell: string): string {
  const [, quoted] = /^="((?:[^"]|"")*)"$/.exec(cell.trim()) ?? []
  if (quoted !== undefined) return quoted.replaceAll('""', '"')
  return /^'(?=[\d+(])/.test(cell) ? cell.slice(1) : cell
}

/** Returns the error of a cell whose value a program has lost, else undefined. */
export function lostCell(text: string, isNumber: boolean): LostCell | undefined {
  if (formulaErrors.test(text))
    return { message: `A spreadsheet wrote ${text}, the error of a formula, instead of a value.` }
  if (exchangeName.test(text))
    return { message: 'The address is the internal name of an Exchange server, which is not an e-mail address.' }
  if (hashes.test(text))
    return { message: 'A spreadsheet wrote # characters because its column was too narrow for the value.' }
  if (!isNumber && scientific.test(text) && /e\+/i.test(text))
    return { message: `A spreadsheet wrote ${text} and lost digits of the value. Format its column as text.` }
  return undefined
}

/** Returns whether a text such as `-` or `n/a` stands for an empty cell. The word NULL does not. */
export const meansNothing = (text: string): boolean => text !== 'NULL' && dashes.test(text)

/** Returns whether a text such as `0/0/00` is a date without a value. */
export const isEmptyDate = (text: string): boolean => emptyDates.test(text)
