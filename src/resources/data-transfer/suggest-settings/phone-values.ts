// Tells telephone numbers from other values of digits: dates, amounts, coordinates, IP addresses.
// A header that names a telephone number makes more values count.

/** A date in any order of day, month and year. */
const dateForm = /^(\d{1,4})[./\- ]+(\d{1,2})[./\- ]+(\d{1,4})$/

function isDate(text: string): boolean {
  const [, first = '', middle = '', last = ''] = dateForm.exec(text.trim()) ?? []
  const [year, other] = first.length > 2 ? [first, last] : [last, first]
  if (other === '' || other.length > 2 || (year.length !== 4 && year.length !== 2)) return false
  const [low, high] = [Number(other), Number(middle)].sort((one, two) => one - two)
  const isYear = year.length === 2 || /^(?:0000|[12]\d{3})$/.test(year)
  return isYear && (low ?? 0) <= 12 && (high ?? 0) <= 31
}

/** Whether a text is a date, or two dates with a dash between them. */
const isPeriod = (text: string): boolean => isDate(text) || text.split(/[-–](?=\s)|(?<=\s)[-–]/).every(isDate)

/** Amounts and coordinates: 0.25, +52.520008, +1.234.567 and (1 234 567), which is negative. */
const isAmount = (text: string): boolean =>
  /^0\.|^\+\d{1,3}\.\d+$|^\([^()]*\)$/.test(text) ||
  (/^\+\d{1,3}(?:\.\d{3})+$/.test(text) && text.replaceAll(/\D/g, '').length <= 9)

const isAddress = (text: string): boolean =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255)

const isOther = (text: string): boolean => isPeriod(text) || isAmount(text) || isAddress(text) || !/[1-9]/.test(text)

const digitsIn = (text: string): number => text.replaceAll(/\D/g, '').length

/** The maximum number of digits: 15 by E.164, after a prefix for calls abroad. */
const maxDigits = 18

/**
 * Returns whether a text looks like a telephone number without the help of a header. Digits without
 * a plus sign and without separators may be any number.
 */
export const looksLikePhone = (text: string): boolean =>
  /^(?:\+|0|\()[\d\s()/.-]+$/.test(text) &&
  !/^\d+$/.test(text) &&
  digitsIn(text) >= 7 &&
  digitsIn(text) <= maxDigits &&
  !isOther(text)

/** Returns whether a text below the header of a telephone number is one. */
export const canBePhone = (text: string): boolean =>
  /^\+?[\d\s()/.–-]+(?:(?:x|ext\.?)\s*\d{1,7})?$/i.test(text) &&
  digitsIn(text) >= 6 &&
  digitsIn(text) <= maxDigits &&
  !isPeriod(text)
