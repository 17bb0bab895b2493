// Generates bodies as bytes with their media type: JSON, forms and files, intact or damaged.
import { follow, isFile, type SchemaObject } from '../support/schema.ts'
import { fileBytes, fileNames } from './files.ts'
import { anything } from './hostile.ts'
import type { Random } from './random.ts'
import { Raw, write } from './values.ts'

export interface Payload {
  bytes: Buffer
  type: string | null
  encoding?: string
}

type Json = Record<string, unknown>

const jsonTypes = [
  'application/json',
  'application/json; charset=utf-8',
  'Application/JSON',
  'application/json;charset="UTF-8"',
]
const oddTypes = [
  null,
  '',
  'text/plain',
  'application/json; charset=utf-16',
  'application/json; charset=latin1',
  'application/json; boundary=x',
  'application/json, text/plain',
  'application/problem+json',
  'application/xml',
  'application/x-www-form-urlencoded',
  'application/x-www-form-urlencoded; charset=iso-8859-1',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'multipart/form-data; boundary=x',
  `multipart/form-data; boundary="${'b'.repeat(300)}"`,
  'multipart/mixed; boundary=x',
  'image/png',
  '*/*',
  '/',
  ';',
  'json',
  'application/json\u00e9',
]

export const jsonPayload = (random: Random, value: unknown): Payload => ({
  bytes: Buffer.from(write(value)),
  type: random.pick(jsonTypes),
})

/** Returns a body with damaged bytes or a wrong media type. */
export function damaged(random: Random, { bytes, type }: Payload): Payload {
  const text = bytes.toString('latin1')
  const at = random.whole(0, text.length)
  const put = (piece: string | Buffer): Buffer =>
    Buffer.concat([bytes.subarray(0, at), Buffer.from(piece as string, 'latin1'), bytes.subarray(at)])
  const kind = random.weighted({
    type: 30,
    cut: 10,
    put: 20,
    whole: 20,
    flip: 8,
    encoding: 4,
    twice: 6,
    wide: 3,
    large: 0.4,
  })
  if (kind === 'type') return { bytes, type: random.pick(oddTypes) }
  if (kind === 'cut') return { bytes: bytes.subarray(0, at), type }
  if (kind === 'put') return { bytes: put(random.pick(pieces)), type }
  if (kind === 'whole') return { bytes: Buffer.from(random.pick(wholes), 'latin1'), type }
  if (kind === 'encoding')
    return { bytes, type, encoding: random.pick(['gzip', 'br', 'identity', 'deflate, gzip', 'x']) }
  if (kind === 'wide') return { bytes: Buffer.from(bytes.toString(), 'utf16le'), type }
  if (kind === 'large')
    return { bytes: Buffer.alloc(random.pick([1_048_575, 1_048_576, 1_048_577, 3_000_000]), ' '), type }
  if (kind === 'twice') {
    const keys = [...text.matchAll(/"[^"\\]*":/g)].map(([key]) => key)
    const key = keys.length > 0 ? random.pick(keys) : '"a":'
    return { bytes: Buffer.from(text.replace(/^\{/, () => `{${key}${write(anything(random))},`)), type }
  }
  const flipped = Buffer.from(bytes)
  for (let count = random.whole(1, 4); count > 0 && flipped.length > 0; count--)
    flipped[random.whole(0, flipped.length - 1)] = random.whole(0, 255)
  return { bytes: flipped, type }
}

const pieces = [
  '\xff',
  '\xc0\x80',
  '\xed\xa0\x80',
  '\xf4\x90\x80\x80',
  '\xef\xbb\xbf',
  '\x00',
  '\\ud800',
  '\\u0000',
  '\\x',
  ',',
  ',,',
  '}',
  ']',
  '{',
  '"',
  '/* */',
  '//',
  '\n',
  '\u00a0',
  "'",
  'NaN',
  '1e9999',
  '--x',
  '--x--',
  '\r\n\r\n',
  '&',
  '=',
  '%',
  '%zz',
  '%00',
]
const wholes = [
  '',
  ' ',
  'null',
  '[]',
  '{}',
  '0',
  '"a"',
  'true',
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{',
  '[',
  '{"a":',
  '{"a":1}{"b":2}',
  '{"a":NaN}',
  "{'a':1}",
  '{a:1}',
  '{"a":1,}',
  '{"":{"":{"":1}}}',
  '\xef\xbb\xbf{}',
  `${'['.repeat(10_000)}`,
  `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`,
  `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`,
  '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
  'a=1&b=2',
  '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n--x--\r\n',
]

/** Returns the values as a multipart or URL-encoded form, possibly with unusual parts. */
export function formPayload(
  random: Random,
  value: unknown,
  schema: SchemaObject | undefined,
  isPlain: boolean,
): Payload {
  const entries =
    typeof value === 'object' && value !== null ? Object.entries(value as Json) : [['value', value] as const]
  const textOf = (each: unknown): string => (typeof each === 'string' ? each : write(each))
  if (isPlain) {
    const pairs = entries.map(([name, each]) => `${escaped(random, name)}=${escaped(random, textOf(each))}`)
    return { bytes: Buffer.from(pairs.join('&')), type: 'application/x-www-form-urlencoded' }
  }
  const boundary = `----fuzz${random.whole(0, 1e9)}`
  const parts: Buffer[] = []
  const add = (head: string, content: Buffer | string): void =>
    void parts.push(
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
      Buffer.from(content as string),
      Buffer.from('\r\n'),
    )
  const quoted = (name: string): string => name.replaceAll('"', '%22').replaceAll(/[\r\n]/g, ' ')
  for (const [name, each] of entries) {
    const property = follow(schema?.properties?.[name])
    const list = Array.isArray(each) && random.chance(0.7) ? each : [each]
    for (const one of list) {
      const isUpload = isFile(property) || (name === 'email' && schema?.['x-bytes'] === true) || random.chance(0.01)
      if (isUpload)
        add(
          `name="${quoted(name)}"; filename="${quoted(random.pick(fileNames))}"${random.chance(0.5) ? `\r\nContent-Type: ${random.pick(['text/csv', 'image/png', 'text/html', 'x', ''])}` : ''}`,
          one instanceof Raw || random.chance(0.95) ? fileBytes(random) : textOf(one),
        )
      else add(`name="${quoted(name)}"`, textOf(one))
    }
  }
  return {
    bytes: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]),
    type: `multipart/form-data; boundary=${boundary}`,
  }
}

const wellFormed = (text: string): string => text.replaceAll(/[\ud800-\udfff]/gu, '\ufffd')

/** Percent-encodes a text, sometimes incorrectly. */
export function escaped(random: Random, text: string): string {
  const whole = encodeURIComponent(wellFormed(text))
  const kind = random.weighted({ whole: 90, plus: 4, twice: 2, loose: 3, raw: 1 })
  if (kind === 'plus') return whole.replaceAll('%20', '+')
  if (kind === 'twice') return encodeURIComponent(whole)
  if (kind === 'loose') return `${whole}${random.pick(['%', '%zz', '%ff', '%c0%80', '%ed%a0%80', '%00', '%u0041'])}`
  return kind === 'raw'
    ? whole.replaceAll(/%(2[0-9A-F]|[57][BD])/g, (code) => decodeURIComponent(code).replace(/[\s#]/, ''))
    : whole
}
