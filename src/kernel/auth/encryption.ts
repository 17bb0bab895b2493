// Authenticated encryption for stored secrets that are needed in plain text later. The
// key is derived from ACCORD_SECRET.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** Thrown when a text was encrypted with another key or was modified since. */
export class DecryptionError extends Error {
  constructor(cause?: unknown) {
    super('It was stored with another ACCORD_SECRET.', { cause })
    this.name = 'DecryptionError'
  }
}

/** The text shown instead of a secret in replies and events. */
export const mask = '••••••'

export interface Encryption {
  encrypt(text: string): string
  /** Returns the plain text. Throws DecryptionError. */
  decrypt(sealed: string): string
  /** Returns a keyed hash. Equal texts have equal hashes. A hash does not reveal its text. */
  hmac(text: string): string
  /**
   * Returns a secret derived from the key for one purpose. Every call with the same purpose returns
   * the same secret. The secret does not reveal the key.
   */
  derive(purpose: string): string
}

/** Returns the secret that a request must contain to deliver inbound mail. */
export const inboundSecretOf = (configured: string | null, encryption: Encryption): string =>
  configured ?? encryption.derive('inbound-mail')

export function createEncryption(secret: string): Encryption {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'accord:seal:1', 32))
  const fingerprintKey = Buffer.from(hkdfSync('sha256', secret, '', 'accord:fingerprint:1', 32))
  return {
    derive: (purpose) => Buffer.from(hkdfSync('sha256', secret, '', `accord:${purpose}:1`, 32)).toString('base64url'),
    hmac: (text) => createHmac('sha256', fingerprintKey).update(text).digest('hex'),
    encrypt(text) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
    },
    decrypt(sealed) {
      const bytes = Buffer.from(sealed, 'base64')
      // Refuses a text that is too short for a full authentication tag. Node accepts shorter tags,
      // but these are easier to forge.
      if (bytes.length < 28) throw new DecryptionError()
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
        decipher.setAuthTag(bytes.subarray(12, 28))
        return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
      } catch (cause) {
        throw new DecryptionError(cause)
      }
    },
  }
}

/** Returns the plain text, or null when it was encrypted with another ACCORD_SECRET. */
export function openOrNull(encryption: Encryption, sealed: string): string | null {
  try {
    return encryption.decrypt(sealed)
  } catch (error) {
    if (error instanceof DecryptionError) return null
    throw error
  }
}
