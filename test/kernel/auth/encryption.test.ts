// Encryption: values decrypt to the same value, their ciphertext reveals nothing, and any change of
// it is detected.
import { createDecipheriv, hkdfSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createEncryption } from '../../../src/kernel/auth/encryption.ts'

const secret = 'a secret of at least thirty-two characters'
const encryption = createEncryption(secret)

describe('seal', () => {
  it.each(['', 'secret', '"quotes" and ünïcödé 🔑', 'x'.repeat(100_000)])('opens what it closed', (text) => {
    expect(encryption.decrypt(encryption.encrypt(text))).toBe(text)
  })

  it('closes the same text differently each time, and shows none of it', () => {
    const [one, two] = [encryption.encrypt('hunter2hunter2'), encryption.encrypt('hunter2hunter2')]
    expect(one).not.toBe(two)
    expect(Buffer.from(one, 'base64').includes('hunter2')).toBe(false)
  })

  it('is AES-256-GCM with a key derived from the secret: a nonce, a tag and the rest', () => {
    const key = Buffer.from(hkdfSync('sha256', secret, '', 'accord:seal:1', 32))
    const bytes = Buffer.from(encryption.encrypt('hunter2hunter2'), 'base64')
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
    decipher.setAuthTag(bytes.subarray(12, 28))
    expect(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString()).toBe('hunter2hunter2')
  })

  it('refuses what was changed, cut short, or closed with another secret', () => {
    const closed = encryption.encrypt('secret')
    const bytes = Buffer.from(closed, 'base64')
    for (const at of [0, 12, 28]) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => encryption.decrypt(changed.toString('base64'))).toThrow()
    }
    expect(() => encryption.decrypt(bytes.subarray(0, 20).toString('base64'))).toThrow()
    expect(() => createEncryption('another secret of thirty-two characters!').decrypt(closed)).toThrow()
  })
})
