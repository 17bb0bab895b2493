// Compression: replies are smaller, have the same content, and their ETags work.
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

let lead: number
let bearer: string
const server = useSharedServer()
beforeAll(async () => {
  lead = (await given(server.admin).lead({ description: 'long '.repeat(1000) })).id
  bearer = `Bearer ${server.admin.token}`
})

const get = (path: string, headers: Record<string, string> = {}) =>
  server.inject({
    method: 'GET',
    url: `/api/admin${path}`,
    headers: { accept: 'application/json', authorization: bearer, ...headers },
  })

describe('a reply', () => {
  it.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ])('is sent in %s on request, with the same content', async (encoding, open) => {
    const plain = await get('/leads')
    const packed = await get('/leads', { 'accept-encoding': encoding })
    expect([plain.headers['content-encoding'], packed.headers['content-encoding']]).toEqual([undefined, encoding])
    expect(open(packed.rawPayload).toString()).toBe(plain.body)
    expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 4)
    expect(packed.headers.vary).toContain('accept-encoding')
  })

  it('stays as it is when it is short, of a session, a stream of events or a file with ranges', async () => {
    const asked = { 'accept-encoding': 'gzip, br' }
    const form = new FormData()
    form.append('file', new Blob(['word '.repeat(1000)], { type: 'text/plain' }), 'words.txt')
    const request = new Request('http://x', { method: 'POST', body: form })
    const file = await server.inject({
      method: 'POST',
      url: '/api/admin/files',
      headers: { authorization: bearer, 'content-type': String(request.headers.get('content-type')) },
      payload: Buffer.from(await request.arrayBuffer()),
    })
    expect(file.statusCode).toBe(201)
    const replies = [
      await get('/sources?fields=id&per_page=1', asked),
      await get(`/files/${file.json().data.id}/download`, asked),
      await server.inject({ method: 'GET', url: '/api/admin/openapi.json', headers: { ...asked, cookie: 'a=b' } }),
    ]
    expect(replies.map(({ statusCode, headers }) => [statusCode, headers['content-encoding']])).toEqual(
      replies.map(() => [200, undefined]),
    )
    const contract = await server.inject({ method: 'GET', url: '/api/admin/openapi.json', headers: asked })
    expect(contract.headers['content-encoding']).toBe('br')
  })

  it('is streamed compressed when it is an export', async () => {
    const packed = await get('/leads/export', { 'accept-encoding': 'gzip' })
    expect([packed.statusCode, packed.headers['content-encoding']]).toEqual([200, 'gzip'])
    expect(gunzipSync(packed.rawPayload).toString()).toBe((await get('/leads/export')).body)
  })
})

describe('the ETag of a compressed reply', () => {
  it('names its encoding, and is good for If-None-Match and If-Match; the bare version for If-Match alone', async () => {
    const { headers } = await get(`/leads/${lead}`, { 'accept-encoding': 'br' })
    const tag = String(headers.etag)
    expect(tag).toMatch(/^"1-[\w-]{22}-br"$/)
    const again = await get(`/leads/${lead}`, { 'accept-encoding': 'br', 'if-none-match': tag })
    expect([again.statusCode, again.headers.etag, again.body]).toEqual([304, tag, ''])
    const plain = await get(`/leads/${lead}`)
    expect(plain.headers.etag).toBe(tag.replace('-br"', '"'))
    expect((await get(`/leads/${lead}`, { 'if-none-match': '"1"' })).statusCode).toBe(200)
    const put = (title: string, match: string) =>
      server.admin.put(`/leads/${lead}`, { title }, { headers: { 'if-match': match } })
    expect((await put('One', tag)).status).toBe(200)
    expect((await put('Two', tag)).status).toBe(412)
    expect((await put('Two', '"2-zip"')).status).toBe(412)
    expect((await put('Two', 'W/"1-br"')).status).toBe(412)
    expect((await put('Two', '"2"')).status).toBe(200)
  })

  it('of a list is the same, but for its end', async () => {
    const plain = String((await get('/leads')).headers.etag)
    const packed = String((await get('/leads', { 'accept-encoding': 'gzip' })).headers.etag)
    expect(packed).toBe(plain.replace(/"$/, '-gzip"'))
    expect((await get('/leads', { 'if-none-match': packed })).statusCode).toBe(304)
  })
})
