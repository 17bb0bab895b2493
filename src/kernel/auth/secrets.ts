// Creates random secrets that are shown once, hashes them for storage, and compares them.
// encryption.ts handles secrets that are decrypted later. passwords.ts handles secrets that users
// choose.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Returns 32 random bytes as base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** Returns the stored form of a secret: its SHA-256 in hexadecimal. */
export const sha256Hex = (secret: string): string => hash('sha256', secret, 'hex')

/**
 * Returns whether two texts are equal. For texts of equal length, the comparison takes constant
 * time, so the duration reveals only whether the lengths differ.
 */
export function constantTimeEquals(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)]
  return first.length === second.length && timingSafeEqual(first, second)
}
