// Authenticated encryption of what must be kept but not be readable in the database file (DESIGN 9), with a key derived
// from ACCORD_SECRET.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** What was sealed cannot be opened: the key is another one, or the bytes have been changed. */
export class DecryptionError extends Error {
  constructor(cause?: unknown) {
    super('It was stored with another ACCORD_SECRET.', { cause })
    this.name = 'SealBroken'
  }
}

/** Stands in replies and events for a value that is stored and shown to nobody. */
export const mask = '••••••'

export interface Encryption {
  encrypt(text: string): string
  /** Throws SealBroken. */
  decrypt(sealed: string): string
  /** Tells whether two texts are the same without letting anybody guess the text. */
  hmac(text: string): string
  /** A secret of its own for a purpose, the same every time. It tells nothing about the key material. */
  derive(purpose: string): string
}

/** The secret that inbound mail must come with (DOMAIN 14.4). */
export const inboundSecretOf = (configured: string | null, seal: Encryption): string =>
  configured ?? seal.derive('inbound-mail')

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
      // A shorter tag would be accepted, and be easier to guess.
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

/** Null where another ACCORD_SECRET sealed it. */
export function openOrNull(seal: Encryption, sealed: string): string | null {
  try {
    return seal.decrypt(sealed)
  } catch (error) {
    if (error instanceof DecryptionError) return null
    throw error
  }
}
