// Hostile uploads: files that are valid in two types, names with paths, and forms that never end. A
// browser that opens a file runs no scripts, and no bytes are stored outside the file folder.
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { safeName } from '../../src/kernel/files/file-types.ts'
import { file, form } from '../support/form.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

const script = '<script>alert(document.domain)</script>'
const bytes = (...parts: (string | number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

async function upload(name: string, content: string | Uint8Array, type = 'image/png') {
  const sent = await form({ file: file(name, content, type) })
  const { body, status, text } = await server.admin.post('/files', sent.body, { headers: sent.headers })
  expect(status, text).toBe(201)
  return body.data
}

const shown = async (id: number) => (await server.admin.get(`/files/${id}/download`)).headers

describe('a file that is two things', () => {
  it.each([
    ['picture.gif', bytes('GIF89a/*', script, '*/=1;alert(1)')],
    ['picture.png', Buffer.concat([pixel, Buffer.from(script)])],
    ['picture.html', Buffer.concat([pixel, Buffer.from(script)])],
    ['picture.bmp', bytes('BM', script)],
    ['picture.jpg', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 16], 'JFIF\0', script)],
    ['picture.svg', `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">${script}</svg>`],
    ['picture.png', `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`],
    ['picture.png', script],
    ['paper.pdf', bytes('%PDF-1.7\n', script, '\n%%EOF')],
    ['paper.pdf', bytes(script, '\n%PDF-1.7\n%%EOF')],
    ['page.xhtml', `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">${script}</html>`],
    ['page.htm', `\ufeff<html>${script}`],
    ['page.html', bytes([0xff, 0xfe], Buffer.from(script, 'utf16le').toString('latin1'))],
    ['page.mht', `MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n${script}`],
    [
      'sheet.xsl',
      `<?xml version="1.0"?><x:stylesheet xmlns:x="http://www.w3.org/1999/XSL/Transform">${script}</x:stylesheet>`,
    ],
    ['script.js', 'alert(1)'],
    ['style.css', 'body{background:url(//evil.example)}'],
    ['app.wasm', bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])],
    ['movie.swf', bytes('FWS', [9, 0, 0, 0, 0], script)],
    ['data.json', `{"a":"${script.replaceAll('"', '')}"}`],
    ['flash.xml', `<cross-domain-policy><allow-access-from domain="*"/></cross-domain-policy>`],
  ])('%s runs nothing in a browser', async (name, content) => {
    // The declared type is ignored.
    for (const declared of ['image/png', 'text/html']) {
      const { id, content_type } = await upload(name, content, declared)
      const headers = await shown(id)
      expect(headers['x-content-type-options']).toBe('nosniff')
      const disposition = String(headers['content-disposition'])
      const type = String(headers['content-type'])
      if (/^inline/.test(disposition))
        expect(type).toMatch(/^(image\/(jpeg|png|apng|gif|webp|avif|bmp)|application\/pdf)$/)
      else expect(disposition).toMatch(/^attachment/)
      if (type !== 'application/pdf') expect(headers['content-security-policy']).toBe("default-src 'none'; sandbox")
      expect(type.startsWith(content_type)).toBe(true)
      await server.admin.delete(`/files/${id}`)
    }
  })
})

describe('a name', () => {
  it.each([
    ['../../../etc/passwd', 'passwd'],
    ['..\\..\\boot.ini', 'boot.ini'],
    ['/etc/cron.d/x', 'x'],
    ['....//....//x.txt', 'x.txt'],
    ['%2e%2e%2fx.txt', '%2e%2e%2fx.txt'],
    ['a.txt\u0000.png', 'a.txt.png'],
    ['a\r\nSet-Cookie: x=1\r\n.txt', 'aSet-Cookie: x=1.txt'],
    ['invoice\u202excod.exe', 'invoicexcod.exe'],
    ['invoice\u061c\u200b\ufeff.pdf', 'invoice.pdf'],
    ['two\u2028lines\u2029.txt', 'twolines.txt'],
    ['CON', '_CON'],
    ['nul.txt', '_nul.txt'],
    ['COM1 .log', '_COM1 .log'],
    ['console.txt', 'console.txt'],
    ['.htaccess', 'htaccess'],
    ['..', 'file'],
    [' . . ', 'file'],
  ])('%j is %j', (sent, kept) => {
    expect(safeName(sent)).toBe(kept)
    expect(safeName(safeName(sent))).toBe(safeName(sent))
  })

  it('adds no header and no parameter to the reply', async () => {
    for (const name of ['a"; filename="b.html', "a.txt'; filename*=UTF-8''b.html", 'a;b\\"c.txt', 'ä"ö;ü.txt', '"']) {
      const { id } = await upload(name, 'text')
      const header = String((await shown(id))['content-disposition'])
      // The header has only a quoted `filename` and a percent-encoded `filename*`.
      expect(header).toMatch(
        /^attachment; filename=("(?:[^"\\]|\\.)*"|[\w.-]+)(; filename\*=UTF-8''[\w.%!#$&+^`|~-]+)?$/,
      )
    }
  })
})

describe('bytes on the disk', () => {
  it('are stored under their hash whatever their name, in folders closed to other system users', async () => {
    await upload('../../../../escaped.txt', 'escaped')
    const folder = join(server.app.services.config.dataDir, 'files')
    const all = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(folder, name)).isFile(),
    )
    for (const name of all) expect(name).toMatch(/^([0-9a-f]{2}\/[0-9a-f]{64}|tmp\/[0-9a-f-]{36})$/)
    expect(readdirSync(server.app.services.config.dataDir)).toEqual(['files'])
  })

  it('are swept only if they are named by a hash: a symbolic link and its target stay', async () => {
    const { dataDir } = server.app.services.config
    const folder = join(dataDir, 'files')
    const outside = join(dataDir, 'outside')
    const hash = 'ab'.repeat(32)
    mkdirSync(join(folder, 'ab'), { recursive: true })
    mkdirSync(outside, { recursive: true })
    writeFileSync(join(outside, 'precious.txt'), 'precious')
    writeFileSync(join(outside, hash), 'precious as well')
    symlinkSync(outside, join(folder, 'zz'))
    symlinkSync(join(outside, 'precious.txt'), join(folder, 'ab', hash))
    server.clock.set('2036-01-01T00:00:00.000Z')
    const swept: string[] = []
    for await (const each of server.app.services.files.keptBefore(new Date('2036-01-01'))) swept.push(each)
    for (const each of swept) await server.app.services.files.remove?.(each)
    expect(existsSync(join(outside, 'precious.txt'))).toBe(true)
    expect(existsSync(join(outside, hash))).toBe(true)
  })
})

describe('a form', () => {
  const boundary = 'x'.repeat(20)
  const send = (body: string, type = `multipart/form-data; boundary=${boundary}`) =>
    server.admin.post('/files', Buffer.from(body), { headers: { 'content-type': type } })
  const part = (headers: string, text: string): string => `--${boundary}\r\n${headers}\r\n\r\n${text}\r\n`
  const end = `--${boundary}--\r\n`
  const disposition = 'Content-Disposition: form-data; name="file"; filename="a.txt"'

  it.each([
    [
      'a part with very many headers',
      part(`${disposition}\r\n${'X-Pad: y\r\n'.repeat(5000)}X-End: z`, 'x').concat(end),
    ],
    ['a part with one endless header', part(`${disposition}\r\nX-Pad: ${'y'.repeat(500_000)}`, 'x').concat(end)],
    ['very many parts', part('Content-Disposition: form-data; name="a"', 'x').repeat(5000).concat(end)],
    [
      'parts in parts',
      part(
        'Content-Disposition: form-data; name="file"\r\nContent-Type: multipart/mixed; boundary=y',
        '--y\r\n\r\nx\r\n--y--',
      ).concat(end),
    ],
    ['no end', part(disposition, 'x')],
    ['nothing', ''],
    ['an end at once', end],
    ['a boundary that never comes', 'hello world'],
    ['a boundary cut short', `--${boundary.slice(2)}\r\n\r\nx`],
    ['a beginning alone', `--${boundary}`],
    ['keys of every object', part('Content-Disposition: form-data; name="__proto__"', '{"polluted":1}').concat(end)],
  ])('of %s is answered, and leaves nothing', async (_what, body) => {
    const { status } = await send(body)
    expect(status).toBeLessThan(500)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    const waiting = join(server.app.services.config.dataDir, 'files', 'tmp')
    expect(existsSync(waiting) ? readdirSync(waiting) : []).toEqual([])
    if (status !== 201) expect(server.events()).toEqual([])
  })

  it.each([
    '',
    'boundary=',
    'boundary="',
    `boundary=${'b'.repeat(5000)}`,
    'boundary=\u0000',
    'charset=utf-7; boundary=x',
  ])('with the parameters %j is refused or read, never our fault', async (parameters) => {
    const { status } = await send(`--x\r\n${disposition}\r\n\r\nx\r\n--x--\r\n`, `multipart/form-data; ${parameters}`)
    expect(status).toBeLessThan(500)
  })
})
