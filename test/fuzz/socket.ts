// Sends requests as bytes on a socket, intact or damaged, and reads the reply.
import { connect } from 'node:net'
import { mark } from './hostile.ts'
import type { Random } from './random.ts'
import type { Wanted } from './requests.ts'

export interface Received {
  status: number
  headers: Record<string, string>
  bytes: Buffer
}

/**
 * Returns the bytes of a request with `Connection: close`, so that the end of the reply is known.
 */
export function bytesOf({ method, url, headers, bytes }: Wanted): Buffer {
  const target = Buffer.from(url)
    .toString('latin1')
    .replaceAll(/[\p{Cc} ]/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
  const lines = [`${method} ${target} HTTP/1.1`]
  if (!headers.some(([name]) => name === 'host')) lines.push('host: localhost')
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  if (bytes !== undefined) lines.push(`content-length: ${bytes.length}`)
  lines.push('connection: close', '', '')
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), bytes ?? Buffer.alloc(0)])
}

const extra: readonly string[] = [
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: \x0bchunked',
  'Content-Length: 0',
  'Content-Length: -1',
  'Content-Length: 5, 6',
  'Content-Length: 99999999999999999999',
  'Content-Length: 0x5',
  'Content-Length: +3',
  'Content-Length: 2000000',
  'Authorization: Bearer 1|x',
  'Host: a\r\nHost: b',
  'Host:',
  'Host: a b/c',
  'Connection: keep-alive, Transfer-Encoding',
  'Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Expect: 100-continue',
  'Expect: something',
  'X-Request-Id: one\r\nX-Request-Id: two',
  'Accept: text/html\r\nAccept: application/json',
  'Content-Type: application/json\r\nContent-Type: text/plain',
  'If-Match: "1"\r\nIf-Match: "2"',
  'Idempotency-Key: a\r\nIdempotency-Key: b',
  'Range: bytes=0-1\r\nRange: bytes=2-3',
  'Cookie: a=1\r\nCookie: b=2',
  'Accord-Dry-Run: true\r\nAccord-Dry-Run: false',
  ' folded: value',
  'name with space: x',
  ': nothing',
  'no colon',
  'x\x00y: 1',
  'x: a\x00b',
  'x: a\rb',
  'x: a\nb',
  `x-bell: \x07`,
  'x-utf8: \xc3\xa9\xf0\x9f\x98\x80',
  `x-${mark}: ${'v'.repeat(9_000)}`,
  `x-long: ${'v'.repeat(20_000)}`,
  Array.from({ length: 150 }, (_, index) => `x-${index}: y`).join('\r\n'),
  Array.from({ length: 3_000 }, (_, index) => `h${index}: y`).join('\r\n'),
  'Trailer: x',
  'Proxy: http://a',
]

const whole: readonly string[] = [
  '',
  '\r\n\r\n',
  'GET\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'GET /healthz HTTP/1.0\r\n\r\n',
  'GET /healthz\r\n\r\n',
  'GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /healthz HTTP/1.1\r\n\r\n',
  'get /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'BREW /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n',
  'GET http://example.com/healthz HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /healthz HTTP/1.1\nHost: a\nConnection: close\n\n',
  'POST /api/admin/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  'POST /api/admin/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n2;x=y\r\n{}\r\n0\r\nX: y\r\n\r\n',
  'POST /api/admin/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n',
  `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  `${'A'.repeat(70_000)}`,
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /\x00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'GET /\xff\xfe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
]

/** Returns the bytes of a request, damaged in a random way. */
export function abuse(random: Random, wanted: Wanted): Buffer {
  const plain = bytesOf(wanted)
  const kind = random.weighted({ header: 55, whole: 20, cut: 5, flip: 14, noise: 4 })
  if (kind === 'whole') return Buffer.from(random.pick(whole), 'latin1')
  if (kind === 'noise') return random.bytes(random.whole(1, 300))
  if (kind === 'cut') return plain.subarray(0, random.whole(0, plain.length))
  const head = plain.indexOf('\r\n\r\n')
  if (kind === 'header') {
    const at = random.chance(0.5) ? plain.indexOf('\r\n') : head
    return Buffer.concat([
      plain.subarray(0, at),
      Buffer.from(`\r\n${random.pick(extra)}`, 'latin1'),
      plain.subarray(at),
    ])
  }
  const flipped = Buffer.from(plain)
  for (let count = random.whole(1, 3); count > 0; count--) flipped[random.whole(0, head)] = random.whole(0, 255)
  return flipped
}

/** Sends bytes and returns the reply, or undefined if there was none within `patienceMs`. */
export function exchange(port: number, bytes: Buffer, patienceMs: number): Promise<Received | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1' })
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(parse(Buffer.concat(parts)))
    }
    const timer = setTimeout(done, patienceMs)
    socket.on('data', (part) => {
      parts.push(part)
      if (isWhole(Buffer.concat(parts))) done()
    })
    socket.on('error', done)
    socket.on('close', done)
    socket.write(bytes)
  })
}

function parse(received: Buffer): Received | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = received.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1])
  if (status < 200) return parse(received.subarray(end + 4))
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const at = line.indexOf(':')
    headers[line.slice(0, at).toLowerCase()] = line.slice(at + 1).trim()
  }
  const body = received.subarray(end + 4)
  if (headers['transfer-encoding'] === 'chunked') return { status, headers, bytes: unchunked(body).bytes }
  const length = headers['content-length']
  return { status, headers, bytes: length === undefined ? body : body.subarray(0, Number(length)) }
}

function isWhole(received: Buffer): boolean {
  const end = received.indexOf('\r\n\r\n')
  const answer = end < 0 ? undefined : parse(received)
  if (!answer) return false
  if (answer.headers['transfer-encoding'] === 'chunked') return unchunked(received.subarray(end + 4)).isWhole
  const length = answer.headers['content-length']
  return length !== undefined && answer.bytes.length >= Number(length)
}

function unchunked(body: Buffer): { bytes: Buffer; isWhole: boolean } {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = body.indexOf('\r\n', at)
    if (line < 0) return { bytes: Buffer.concat(parts), isWhole: false }
    const size = Number.parseInt(body.subarray(at, line).toString('latin1'), 16)
    if (size === 0) return { bytes: Buffer.concat(parts), isWhole: true }
    parts.push(body.subarray(line + 2, line + 2 + size))
    at = line + 4 + size
    if (at > body.length) return { bytes: Buffer.concat(parts), isWhole: false }
  }
}
