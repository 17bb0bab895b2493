// Secrets that are given out once: how they are made, what is stored of them, and how they are compared. What is stored so that it can be
// read again is sealed (encryption.ts); what people choose is in passwords.ts.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 32 random bytes, base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** What is stored of a secret. */
export const sha256Hex = (secret: string): string => hash('sha256', secret, 'hex')

/** In constant time for texts of one length, which is no secret. */
export function constantTimeEquals(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)]
  return first.length === second.length && timingSafeEqual(first, second)
}
