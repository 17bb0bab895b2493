// Reads and merges postal addresses. An address is stored as JSON text with the same five keys in
// the same order, so that equal addresses are equal texts.
import type { Schema } from '../../contract/types.ts'
import type { ValidationErrors } from '../errors.ts'

type Address = Schema<'Address'>

export const addressParts = [
  'address',
  'country',
  'state',
  'city',
  'postcode',
] as const satisfies readonly (keyof Address)[]

export const readAddress = (stored: string | null): Address | null =>
  stored === null ? null : (JSON.parse(stored) as Address)

/**
 * Returns the text to store, in which sent keys replace stored keys. Returns null, which deletes
 * the address, when null was sent or all parts are empty. Returns undefined, which changes nothing,
 * when no address was sent.
 */
export function mergeAddress(
  stored: string | null,
  sent: Schema<'AddressInput'> | undefined,
): string | null | undefined {
  if (sent === undefined || sent === null) return sent
  const before = readAddress(stored)
  const merged = Object.fromEntries(
    addressParts.map((part) => [part, sent[part] === undefined ? (before?.[part] ?? null) : sent[part]]),
  )
  return Object.values(merged).every((part) => part === null) ? null : JSON.stringify(merged)
}

/** The parts that a required address must have. The state is optional. */
export const needed = ['address', 'city', 'country', 'postcode'] as const satisfies readonly (keyof Address)[]

/**
 * Adds an error for each missing part of a required address. `stored` is the text that will be
 * stored.
 */
export function requireAddress(field: string, stored: string | null, errors: ValidationErrors): void {
  const address = readAddress(stored)
  if (address === null) errors.invalid(field, 'The field is required.')
  else
    for (const part of needed) if (address[part] === null) errors.invalid(`${field}.${part}`, 'The field is required.')
}
