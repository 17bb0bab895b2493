// Random secrets that are shown once: creation, stored hash, comparison. encryption.ts handles
// secrets that are read again, passwords.ts those that users choose.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 32 random bytes, base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** The stored form of a secret. */
export const sha256Hex = (secret: string): string => hash('sha256', secret, 'hex')

/** Compares in constant time; the length is not a secret. */
export function constantTimeEquals(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)]
  return first.length === second.length && timingSafeEqual(first, second)
}
