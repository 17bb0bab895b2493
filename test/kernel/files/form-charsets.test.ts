// Forms whose names and texts are not UTF-8.
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formPairs } from '../../../src/contract/input/form-fields.ts'
import { utf8PartHeaders } from '../../../src/kernel/files/part-headers.ts'

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const type = 'application/x-www-form-urlencoded'

describe('a form in application/x-www-form-urlencoded', () => {
  it.each<[string, string, string, string]>([
    ['UTF-8', 'a=%C3%B6+%E2%82%AC', type, 'ö €'],
    ['ISO-8859-1, named', 'a=J%F6rg+Gr%F6%DFe', `${type}; charset=iso-8859-1`, 'Jörg Größe'],
    ['windows-1252, not named', 'a=%80+%93ok%94', type, '€ “ok”'],
    ['UTF-8 with another name', 'a=%C3%B6', `${type}; charset=iso-8859-1`, 'ö'],
    ['Shift_JIS, named', 'a=%93%FA%96%7B', `${type};charset="Shift_JIS"`, '日本'],
    ['plain bytes', 'a=J\xf6rg', type, 'Jörg'],
    ['escapes that are none', 'a=100%+%zz', type, '100% %zz'],
    ['an unknown name', 'a=%F6', `${type}; charset=klingon`, 'ö'],
  ])('is read: %s', (_, body, contentType, text) => {
    expect(formPairs(latin1(body), contentType)).toEqual([['a', text]])
  })

  it('is read as URLSearchParams reads it', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))), (pairs) => {
        const text = new URLSearchParams(pairs).toString()
        expect(formPairs(Buffer.from(text), type)).toEqual([...new URLSearchParams(text)])
      }),
    )
    const odd = '&&a&=b&c=d=e&%&'
    expect(formPairs(Buffer.from(odd), type)).toEqual([...new URLSearchParams(odd)])
  })
})

describe('the headers of the parts of a multipart form', () => {
  const form = (name: string, content: string): Buffer =>
    latin1(
      `--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${content}\r\n--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n\xfc\r\n--b--\r\n`,
    )

  async function recoded(bytes: Buffer, sizes: readonly number[]): Promise<Buffer> {
    const stream = utf8PartHeaders('multipart/form-data; boundary=b')
    const all = buffer(stream.pipe(new PassThrough()))
    let from = 0
    for (const size of sizes) {
      stream.write(bytes.subarray(from, from + size))
      from += size
    }
    stream.end(bytes.subarray(from))
    return all
  }

  it('become UTF-8, and the contents stay as they are, however the bytes arrive', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 12 }), async (sizes) => {
        const given = form('Pr\xfcfung \x80.pdf', '\xff\xfe--a\r\n\r\n\xe4')
        const text = (await recoded(given, sizes)).toString('latin1')
        expect(text).toBe(
          given.toString('latin1').replace('Pr\xfcfung \x80', Buffer.from('Prüfung €').toString('latin1')),
        )
      }),
    )
  })

  it.each(['xx--b\xff\r\n\r\n\xfe', '\r\n--bb\xff\r\n\r\n\xfe'])(
    'are told from contents that look like them: %j',
    async (content) => {
      const given = form('a.bin', content)
      for (const sizes of [[], [1], [60, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]])
        expect(Buffer.compare(await recoded(given, sizes), given)).toBe(0)
    },
  )

  it('in UTF-8 stay as they are', async () => {
    const given = form(Buffer.from('Prüfung €').toString('latin1'), '\xff')
    expect(Buffer.compare(await recoded(given, [3, 50]), given)).toBe(0)
  })
})
