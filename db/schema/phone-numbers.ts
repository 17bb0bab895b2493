// Reads phone numbers as people write them, with libphonenumber.

import {
  type CountryCode,
  isSupportedCountry,
  type PhoneNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/min'
import { digitsOf, searchFold } from './search-folding.ts'

export { type CountryCode, isSupportedCountry }

/** An extension at the end of a number, such as `ext. 12`. */
const extension = /(?:ext(?:ension)?|x|app|poste|dw|durchwahl|#)[ .:]{0,3}\d{1,7} *$/
/** The trunk prefix that is left out in calls from abroad, as in `+49 (0)151`. */
const optionalTrunk = /\( *0+ *\)/
const tooShort = 6

/** Returns the number without the forms that no call needs. */
const written = (text: string): string => searchFold(text).replace(extension, '')

/** Returns the number without extension and optional trunk prefix, with `+` for `00`. */
const internationalOf = (text: string): string =>
  written(text)
    .replace(/^ *00(?=[1-9])/, '+')
    .replace(optionalTrunk, '')

/** Matches a number with a trunk prefix behind its country code, or what looks like one. */
const mayHaveTrunk = /^\+\d{1,3}\D{0,3}0/

function parsed(text: string, country?: CountryCode): PhoneNumber | undefined {
  const international = internationalOf(text)
  if (!international.startsWith('+') && country === undefined) return undefined
  const found = parsePhoneNumberFromString(international, country)
  return found?.isPossible() ? found : undefined
}

const digitsOfE164 = (number: PhoneNumber): string => number.number.slice(1)

/**
 * Returns the form of a phone number that is stored for comparison: the country code and the number
 * if the text begins with a country code, else the digits as written. Without the extension.
 */
export function phoneKey(text: string): string {
  const known = knownKeys.get(text)
  if (known !== undefined) return known
  const key = keyOf(text)
  if (knownKeys.size >= maxKnownKeys) knownKeys.clear()
  if (text.length <= maxKnownLength) knownKeys.set(text, key)
  return key
}

/**
 * The keys of the last numbers. A write of a person asks for the key of a number several times, and
 * the library takes longer for one than a query takes.
 */
const knownKeys = new Map<string, string>()
const maxKnownKeys = 500
const maxKnownLength = 100

function keyOf(text: string): string {
  const international = internationalOf(text)
  if (!international.startsWith('+')) return digitsOf(written(text)) || digitsOf(text)
  const number = mayHaveTrunk.test(international) ? parsed(text) : undefined
  return number ? digitsOfE164(number) : digitsOf(international)
}

/**
 * Returns every key that a number can be stored under. A number of the installation's country can
 * be stored with the country code or without.
 */
export function phoneKeys(text: string, country: CountryCode | null): string[] {
  if (country === null) return [phoneKey(text)]
  const number = parsed(text, country)
  if (number?.country !== country) return [phoneKey(text)]
  const { nationalNumber } = number
  // The library formats only numbers of a length that is in use.
  const national = [nationalNumber, `0${nationalNumber}`, digitsOf(number.formatNational())]
  return [...new Set([phoneKey(text), digitsOfE164(number), ...national])]
}

const withoutTrunk = (digits: string): string => digits.replace(/^0+/, '')

/**
 * Returns the digits by which a search finds a number: those of the national number without trunk
 * prefix, which every usual form contains. Part of a number gives its own digits.
 */
export function phoneSearchForms(text: string, country: CountryCode | null): string[] {
  const number = parsed(text, country ?? undefined)
  if (number) return [number.nationalNumber]
  const digits = digitsOf(written(text).replace(optionalTrunk, '')) || digitsOf(text)
  return [...new Set([digits, withoutTrunk(digits) || digits])]
}

/** Returns the texts by which the search index finds a number: as written, whole and national. */
export function phoneDocument(text: string): string[] {
  const key = phoneKey(text)
  return [...new Set([text, key, parsed(text)?.nationalNumber ?? withoutTrunk(key)])]
}

/**
 * Returns the numbers in a text that contains two or more, or null. `030/123 456` is one number,
 * and `030 123456 / 0171 654321` are two.
 */
export function numbersIn(text: string): string[] | null {
  const bySlash = trimmed(text.split('/'))
  const isSlashed = bySlash.length > 1 && bySlash.slice(1).every((each) => /^[+0]/.test(each))
  const found = isSlashed ? bySlash : trimmed(text.split(/[,;|\n]| (?:or|oder|ou|and|und|et) /i))
  return found.length > 1 && found.every((each) => digitsOf(each).length >= tooShort) ? found : null
}

const trimmed = (texts: readonly string[]): string[] => texts.map((text) => text.trim()).filter(Boolean)
