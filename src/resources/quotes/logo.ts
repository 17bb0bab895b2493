// Checks whether the logo of the seller can be drawn, because a damaged or huge image must not
// prevent printing.
import { inflateSync } from 'node:zlib'

/**
 * The maximum number of pixels of a logo. The limit bounds the memory, because a decoded pixel
 * takes up to eight bytes.
 */
const maxPixels = 4_000_000
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** The number of samples per pixel for each PNG color type. */
const samples: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

/**
 * Returns whether the image can be drawn. A PNG must be complete, not interlaced, and have at most
 * `maxPixels` pixels. A JPEG needs no further check, because the PDF contains its bytes unchanged.
 */
export function isDrawable(bytes: Uint8Array): boolean {
  const png = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!png.subarray(0, 8).equals(signature)) return png[0] === 0xff && png[1] === 0xd8
  try {
    const [width, height, depth] = [png.readUInt32BE(16), png.readUInt32BE(20), png.readUInt8(24)]
    const [perPixel, interlaced] = [samples[png.readUInt8(25)], png.readUInt8(28)]
    if (perPixel === undefined || interlaced !== 0 || width * height === 0 || width * height > maxPixels) return false
    const expected = height * (1 + Math.ceil((width * depth * perPixel) / 8))
    return inflateSync(pixelsOf(png), { maxOutputLength: expected }).length === expected
  } catch {
    return false
  }
}

function pixelsOf(png: Buffer): Buffer {
  const parts: Buffer[] = []
  let isOver = false
  for (let at = 8; !isOver; ) {
    const length = png.readUInt32BE(at)
    const kind = png.toString('latin1', at + 4, at + 8)
    if (at + 12 + length > png.length) throw new RangeError('The picture is truncated.')
    if (kind === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    isOver = kind === 'IEND'
    at += 12 + length
  }
  return Buffer.concat(parts)
}
