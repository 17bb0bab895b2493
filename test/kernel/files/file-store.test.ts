// Uploads and downloads: the limits of a form, the detected type and name of an upload, no
// leftovers of a refused request, and failed streams that do not look complete.
import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { isFile, readForm } from '../../../src/contract/input/form.ts'
import { safeName } from '../../../src/kernel/files/file-types.ts'
import { encode, file, form } from '../../support/form.ts'
import { keptBytes, pixel } from '../../support/pictures.ts'
import { useServer } from '../../support/using.ts'

let before: string[]
const server = useServer()
beforeEach(async () => {
  before = await keptBytes(server)
})

async function send(parts: Parameters<typeof form>[0]) {
  const { body, headers } = await form(parts)
  return server.admin.post('/files', body, { headers })
}

const raw = (body: string | Buffer, contentType = 'multipart/form-data; boundary=x') =>
  server.admin.post('/files', body, { headers: { 'content-type': contentType } })

const mib = 1024 * 1024

/** Expects that the request left no row, no event and no bytes. */
async function expectNothing(): Promise<void> {
  expect(server.events()).toEqual([])
  expect(await server.store.db.selectFrom('files').selectAll().execute()).toEqual([])
  expect(await keptBytes(server)).toEqual(before)
}

async function listening(): Promise<number> {
  if (!server.app.http.server.listening) await server.app.http.listen({ port: 0, host: '127.0.0.1' })
  return (server.app.http.server.address() as { port: number }).port
}

describe('over a connection', () => {
  it('a large file comes in and goes out as it was, in whole and in part', async () => {
    const url = `http://127.0.0.1:${await listening()}/api/admin/files`
    const headers = { authorization: `Bearer ${server.admin.token}`, accept: 'application/json' }
    const bytes = randomBytes(3 * mib)
    const { body, headers: own } = await form({ file: file('large.bin', bytes) })
    const posted = await fetch(url, { method: 'POST', headers: { ...headers, ...own }, body: new Uint8Array(body) })
    expect(posted.status).toBe(201)
    const { data } = (await posted.json()) as { data: { id: number } }
    const whole = await fetch(`${url}/${data.id}/download`, { headers })
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true)
    const part = await fetch(`${url}/${data.id}/download`, { headers: { ...headers, range: 'bytes=1000000-2000000' } })
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(1_000_000, 2_000_001))).toBe(true)
  })

  it('a refused form does not cost the caller the connection', async () => {
    const url = `http://127.0.0.1:${await listening()}/api/admin/files`
    const { body, headers } = await form({ file: file('large.bin', Buffer.alloc(25 * mib + 1)) })
    const authorization = `Bearer ${server.admin.token}`
    const accept = 'application/json'
    for (const [sent, status] of [
      [{ ...headers, accept, authorization }, 413],
      [{ ...headers, accept }, 401],
    ] as const)
      expect((await fetch(url, { method: 'POST', headers: sent, body: new Uint8Array(body) })).status).toBe(status)
    await expectNothing()
  })
})

describe('a form is refused, and leaves nothing,', () => {
  it('when its file is empty', async () => {
    const { status, body } = await send({ file: file('a.txt', '') })
    expect([status, body.errors]).toEqual([422, { file: ['The file is empty.'] }])
    await expectNothing()
  })

  it('when no file was chosen, or none is there', async () => {
    for (const parts of [{ file: file('', '') }, {}]) {
      const { status, body } = await send(parts)
      expect([status, body.errors]).toEqual([422, { file: ['The field is required.'] }])
    }
    await expectNothing()
  })

  it('when there are two files for one field', async () => {
    const { status, body } = await send({ file: [file('a.txt', 'one'), file('b.txt', 'two')] })
    expect([status, body.errors]).toEqual([422, { file: ['Must not be sent more than once.'] }])
    await expectNothing()
  })

  it('when it has an unknown field or file', async () => {
    const { status, body } = await send({ file: file('a.txt', 'one'), files: file('b.txt', 'two'), note: 'hello' })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['files', 'note']])
    expect(body.errors.files).toEqual(['Unknown field. Did you mean `file`?'])
    await expectNothing()
  })

  it('when a file is larger than 25 MiB, and takes one that is not', async () => {
    const large = await send({ file: file('large.bin', Buffer.alloc(25 * mib + 1)) })
    expect([large.status, large.body.code]).toEqual([413, 'payload_too_large'])
    await expectNothing()
    const fits = await send({ file: file('fits.bin', Buffer.alloc(25 * mib)) })
    expect([fits.status, fits.body.data.size]).toEqual([201, 25 * mib])
  })

  it('when all of it is larger than 26 MiB, before it is known who asks', async () => {
    const { body, headers } = await form({ file: file('large.bin', Buffer.alloc(26 * mib)) })
    expect((await server.anonymous.post('/files', body, { headers })).status).toBe(413)
    await expectNothing()
  })

  it('when it has too many parts, or too many files', async () => {
    const many = Object.fromEntries(Array.from({ length: 201 }, (_each, index) => [`f${index}`, 'x']))
    expect((await send({ file: file('a.txt', 'one'), ...many })).status).toBe(413)
    const files = Array.from({ length: 21 }, (_each, index) => file('a.txt', `number ${index}`))
    expect((await send({ file: files })).status).toBe(413)
    await expectNothing()
  })

  it('when a text is longer than any field takes', async () => {
    expect((await send({ file: file('a.txt', 'one'), note: 'x'.repeat(256 * 1024 + 1) })).status).toBe(413)
    await expectNothing()
  })

  it.each([
    ['no boundary', 'anything', 'multipart/form-data'],
    ['no parts', 'anything', undefined],
    [
      'an end that is missing',
      '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nbytes',
      undefined,
    ],
    ['a part without a name', '--x\r\ncontent-disposition: form-data\r\n\r\nbytes\r\n--x--\r\n', undefined],
  ])('when it has %s', async (_what, body, type) => {
    const answer = await raw(body, type)
    expect([answer.status, answer.body.code]).toEqual([400, 'malformed_request'])
    await expectNothing()
  })

  it('when it is not a form at all', async () => {
    expect((await server.admin.post('/files', { file: 'text' })).status).toBe(415)
    await expectNothing()
  })

  it('when the caller goes away in the middle', async () => {
    const port = await listening()
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST /api/admin/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.admin.token}\r\n` +
        'content-type: multipart/form-data; boundary=x\r\ncontent-length: 100000\r\n\r\n' +
        '--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf of',
    )
    await expect.poll(async () => (await keptBytes(server)).length).toBe(before.length + 1)
    socket.destroy()
    await expect.poll(() => keptBytes(server)).toEqual(before)
    await expectNothing()
  })
})

describe('bytes', () => {
  it('lie under their hash, readable by their owner alone', async () => {
    const { data } = (await send({ file: file('a.txt', 'private bytes') })).body
    const { dataDir } = server.app.services.config
    const path = join(dataDir, 'files', data.sha256.slice(0, 2), data.sha256)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(dataDir, 'files'))).mode & 0o777).toBe(0o700)
  })

  it('stay when one of two requests with the same bytes is refused', async () => {
    const { body, headers } = await form({ file: file('a.txt', 'the same bytes') })
    const [kept, ...refused] = await Promise.all([
      server.admin.post('/files', body, { headers }),
      server.admin.post('/files', body, { headers: { ...headers, 'accord-dry-run': 'true' } }),
      server.admin.post('/files?unknown=1', body, { headers }),
    ])
    expect([kept.status, ...refused.map(({ status }) => status)]).toEqual([201, 200, 422])
    expect((await server.admin.get(`/files/${kept.body.data.id}/download`)).text).toBe('the same bytes')
    expect(await keptBytes(server)).toHaveLength(before.length + 1)
  })

  it.each([
    ['table.csv', 'a,b\n1,2\n', 'text/csv'],
    ['TABLE.CSV', 'a,b\n', 'text/csv'],
    ['notes.txt', 'Grüße', 'text/plain'],
    ['notes', 'no ending', 'text/plain'],
    ['program.exe', 'only text', 'text/plain'],
    ['data.json', '{"a":1}', 'application/json'],
    ['drawing.svg', '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml'],
    ['page.html', '<p>hello', 'text/html'],
    ['table.csv', Buffer.from([0x61, 0xff, 0x62]), 'application/octet-stream'],
    ['table.csv', 'a\u0000b', 'application/octet-stream'],
    ['photo.csv', pixel, 'image/png'],
    ['cut.png', pixel.subarray(0, 12), 'application/octet-stream'],
    ['broken.zip', Buffer.from([0x50, 0x4b, 3, 4, 0, 0]), expect.stringMatching(/zip|octet-stream/)],
  ])('called %s are what their content says', async (name, content, type) => {
    const { status, body } = await send({ file: file(name, content, 'image/gif') })
    expect([status, body.data.content_type]).toEqual([201, type])
  })
})

describe('a name', () => {
  it.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\me\\Report.pdf', 'Report.pdf'],
    ['a\u0000b\n.txt', 'ab.txt'],
    ['photo\u202egpj.exe', 'photogpj.exe'],
    ['  spaced .txt ', 'spaced .txt'],
    ['...', 'file'],
    ['', 'file'],
    ['half \ud800 pair', 'half  pair'],
    ['e\u0301.txt', 'é.txt'],
  ])('%j is kept as %j', (sent, kept) => {
    expect(safeName(sent)).toBe(kept)
  })

  it('is cut to 255 characters and keeps its ending', () => {
    const name = safeName(`${'😀'.repeat(300)}.xlsx`)
    expect([[...name].length, name.endsWith('😀.xlsx')]).toEqual([255, true])
    expect([...safeName(`a.${'b'.repeat(400)}`)].length).toBe(255)
  })

  it('costs next to nothing however long it is', () => {
    // Takes milliseconds. A quadratic algorithm would take minutes and exceed the timeout.
    for (const long of ['.', ' ', '\u0301\u0323']) {
      const name = safeName(`${'x/'.repeat(500)}a${long.repeat(200_000)}a.pdf`)
      expect([[...name].length <= 255, name.normalize('NFD').startsWith('a'), name.endsWith('.pdf')]).toEqual([
        true,
        true,
        true,
      ])
    }
  })

  it('comes through a form as it was written', async () => {
    const { body } = await send({ file: file('Jahr "26" – é€.txt', 'hello') })
    expect(body.data.name).toBe('Jahr "26" – é€.txt')
  })
})

describe('a form becomes the body its schema describes', () => {
  const schema = {
    type: 'object',
    properties: {
      title: { type: 'string' },
      count: { type: 'integer' },
      note: { type: ['string', 'null'] },
      owner_id: { type: ['integer', 'null'] },
      tag_ids: { type: 'array', items: { type: 'integer' } },
      people: { type: 'object', properties: { users: { type: 'array', items: { type: 'integer' } } } },
      file_id: { anyOf: [{ type: 'integer' }, { type: 'object', properties: { id: { type: 'integer' } } }] },
      attachments: { type: 'array', items: { type: 'string', format: 'file' } },
    },
  }
  const read = (texts: Record<string, string[]>) =>
    readForm(new Map(Object.entries(texts).map(([name, each]) => [name, { texts: each, files: [] }])), schema)

  it('with numbers, lists and objects where it wants them, and texts where it does not', () => {
    expect(
      read({
        title: ['12'],
        count: ['12'],
        owner_id: [''],
        tag_ids: ['1', '2'],
        people: ['{"users":[3]}'],
        file_id: ['{"id":7}'],
      }).value,
    ).toEqual({ title: '12', count: 12, owner_id: null, tag_ids: [1, 2], people: { users: [3] }, file_id: { id: 7 } })
    expect(read({ tag_ids: ['[1,2]'], file_id: ['7'] }).value).toEqual({ tag_ids: [1, 2], file_id: 7 })
  })

  it('leaves what it cannot read to be refused', () => {
    expect(read({ count: ['1e3'], people: ['{"users":'], __proto__x: ['a'] }).value).toEqual({
      count: '1e3',
      people: '{"users":',
      __proto__x: 'a',
    })
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    expect(read({ people: [deep] }).value).toEqual({ people: deep })
    expect(read({ title: ['a', 'b'] }).found).toEqual([['title', 'Must not be sent more than once.']])
  })

  it('knows files by their format, also in lists', () => {
    expect([isFile(schema.properties.attachments), isFile(schema.properties.title)]).toEqual([true, false])
  })
})

describe('a stream that fails', () => {
  const broken = (chunks: string[]) => ({
    size: 100,
    isInTrash: false,
    read: () =>
      Readable.from(
        (async function* () {
          yield* chunks
          throw new Error('the disk is gone')
        })(),
        { objectMode: false },
      ),
  })

  it('before its first byte answers a problem that says nothing of a file', async () => {
    const { id } = (await send({ file: file('a.txt', 'soon gone') })).body.data
    vi.spyOn(server.app.services.files, 'find').mockResolvedValueOnce(broken([]))
    const { status, body, headers } = await server.admin.get(`/files/${id}/download`)
    expect([status, body.code]).toEqual([500, 'internal_error'])
    expect(headers['content-disposition']).toBeUndefined()
    expect(Number(headers['content-length'])).toBeGreaterThan(100)
  })

  it('after it ends the connection', async () => {
    const { id } = (await send({ file: file('a.txt', 'soon gone') })).body.data
    vi.spyOn(server.app.services.files, 'find').mockResolvedValueOnce(broken(['half ', 'of it']))
    await expect(server.admin.get(`/files/${id}/download`)).rejects.toThrow()
  })
})

it('a field of a form may have its name in brackets, as lists of some clients do', async () => {
  const data = new FormData()
  data.append('file[]', file('a.txt', 'in brackets'))
  const { body, headers } = await encode(data)
  expect((await server.admin.post('/files', body, { headers })).status).toBe(201)
})
