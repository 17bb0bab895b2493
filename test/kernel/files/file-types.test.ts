// Which bytes count as text, chunk by chunk.
import { describe, expect, it } from 'vitest'
import { textWatcher } from '../../../src/kernel/files/file-types.ts'

const isText = (bytes: Buffer, size = 3): boolean => {
  const watcher = textWatcher()
  for (let at = 0; at < bytes.length; at += size) watcher.see(bytes.subarray(at, at + size))
  return watcher.isText()
}
const text = 'name;größe\r\nÜber 日本 🎉\t5\r\n'
const bigEndian = (of: string): Buffer => Buffer.from(of, 'utf16le').swap16()

describe('a text file', () => {
  it('is UTF-8, or UTF-16 with a byte order mark', () => {
    for (const bytes of [Buffer.from(text), Buffer.from(`\ufeff${text}`, 'utf16le'), bigEndian(`\ufeff${text}`)])
      expect(isText(bytes)).toBe(true)
    expect(isText(Buffer.alloc(0))).toBe(true)
  })

  it('has no control characters and no halves of characters', () => {
    for (const bytes of [
      Buffer.from(text, 'utf16le'),
      Buffer.from('\ufeffa\u0000b', 'utf16le'),
      Buffer.from('\ufeff\ud83d', 'utf16le'),
      Buffer.from('ä', 'latin1'),
      Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]),
    ])
      expect(isText(bytes)).toBe(false)
  })
})
