// A postal address as stored: JSON text with the same five keys in the same order, so that equal
// addresses are equal texts (DOMAIN 3.2).
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
 * The text to store: sent keys replace stored ones, null clears the whole address, undefined keeps
 * it. An address whose parts are all empty counts as none.
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

/** The parts that a required address must have (DOMAIN 3.2); the state is optional. */
export const needed = ['address', 'city', 'country', 'postcode'] as const satisfies readonly (keyof Address)[]

/** Reports the missing parts of a required address, as it will be stored. */
export function requireAddress(field: string, stored: string | null, found: ValidationErrors): void {
  const address = readAddress(stored)
  if (address === null) found.invalid(field, 'The field is required.')
  else
    for (const part of needed) if (address[part] === null) found.invalid(`${field}.${part}`, 'The field is required.')
}
