// The values of headers and query parameters. The values are write-only:
// the database stores them encrypted, and replies and events show a mask. A body that sends the
// mask or no value keeps the stored value.
import type { Schema } from '../../contract/types.ts'
import { type Encryption, mask, openOrNull } from '../../kernel/auth/encryption.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'

/**
 * A header or query parameter as the database stores it. `sealed` is the encrypted value; null
 * means an empty value.
 */
interface StoredValue {
  key: string
  sealed: string | null
}

/** A header or query parameter as a request body sends it. */
export interface SentValue {
  key: string
  value?: string | null
}

/**
 * A decrypted header or query parameter. `value` is null when it was encrypted with another
 * ACCORD_SECRET.
 */
export interface DecryptedValue {
  key: string
  value: string | null
}

const read = (stored: string): StoredValue[] => JSON.parse(stored) as StoredValue[]

export const maskValues = (stored: string): Schema<'WriteOnlyValue'>[] =>
  read(stored).map(({ key, sealed }) => ({ key, value: sealed === null ? '' : mask }))

/** Returns the values of a body with masks, because events store the body. */
export const maskInput = (sent: readonly SentValue[]): SentValue[] =>
  sent.map(({ key, value }) => ({ key, ...(value !== undefined && { value: value ? mask : value }) }))

export const decryptValues = (stored: string, encryption: Encryption): DecryptedValue[] =>
  read(stored).map(({ key, sealed }) => ({ key, value: sealed === null ? '' : openOrNull(encryption, sealed) }))

interface ValueChange {
  /** The field of the body to which validation errors refer. */
  field: string
  sent: readonly SentValue[] | undefined
  stored: string
  /** Whether the write changes the URL. Stored values must not be sent to another address. */
  isMoved: boolean
  /** Normalizes a name: names with equal results count as the same name. */
  nameOf: (key: string) => string
  encryption: Encryption
  errors: ValidationErrors
}

const forAnotherAddress = 'The stored value was given for another address. Send the value again, or take it out.'

/**
 * Returns the values to store, or undefined when the write keeps all stored values. A value that
 * equals the stored value keeps its ciphertext, so that the column does not change.
 */
export function encryptChanges({
  field,
  sent,
  stored,
  isMoved,
  nameOf,
  encryption,
  errors,
}: ValueChange): string | undefined {
  const known = read(stored)
  if (sent === undefined) {
    if (isMoved && known.some(({ sealed }) => sealed !== null))
      errors.invalid(field, 'The stored values were given for another address. Send them again, or an empty list.')
    return undefined
  }
  const counts = new Map<string, number>()
  const values = sent.map(({ key, value }, index): StoredValue => {
    const name = nameOf(key)
    const same = known.filter((each) => nameOf(each.key) === name)
    const place = counts.get(name) ?? 0
    counts.set(name, place + 1)
    const old = same[place]
    const refuse = (sentence: string): void => errors.invalid(`${field}.${index}.value`, sentence)
    if (value === mask || (value === undefined && old)) {
      const { length } = sent.filter((each) => nameOf(each.key) === name)
      if (!old) refuse('No value is stored under this name. Send one.')
      else if (same.length > 1 && length !== same.length)
        refuse('Several values are stored under this name. Send all of them again.')
      else if (isMoved && old.sealed !== null) refuse(forAnotherAddress)
      return { key, sealed: old?.sealed ?? null }
    }
    if (!value) return { key, sealed: null }
    const isSame = old?.sealed != null && openOrNull(encryption, old.sealed) === value
    return { key, sealed: isSame ? old.sealed : encryption.encrypt(value) }
  })
  return JSON.stringify(values)
}

/**
 * Returns the stored values merged with the parameters of a query string. A parameter of the query
 * string replaces the stored values of the same name.
 */
export function mergeQueryValues(
  stored: string,
  query: readonly Required<SentValue>[],
  encryption: Encryption,
): string {
  const known = read(stored)
  const names = new Set(query.map(({ key }) => key))
  const others = known.filter(({ key }) => !names.has(key))
  const own = query.map(({ key, value }, index): StoredValue => {
    const place = query.slice(0, index).filter((each) => each.key === key).length
    const old = known.filter((each) => each.key === key)[place]
    if (!value) return { key, sealed: null }
    const isSame = old?.sealed != null && openOrNull(encryption, old.sealed) === value
    return { key, sealed: isSame ? old.sealed : encryption.encrypt(value) }
  })
  return JSON.stringify([...own, ...others])
}
