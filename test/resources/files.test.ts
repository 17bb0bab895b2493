// Files: visibility, downloads, links without a token that work for five minutes, and
// no leftovers of refused or forgotten uploads. Reading and storing bytes is in
// test/kernel/files/file-store.test.ts.

import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Context } from '../../src/kernel/context.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { attachFile, fileRefs, releaseFiles } from '../../src/resources/files/attach.ts'
import { cleanFiles } from '../../src/resources/files/clean-up.ts'
import { signedUrl } from '../../src/resources/files/signed-links.ts'
import { type Caller, startServer } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { keptBytes, pixel } from '../support/pictures.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()

async function upload(sent: File, caller: Caller = server.admin, headers: Record<string, string> = {}) {
  const { body, headers: own } = await form({ file: sent })
  return caller.post('/files', body, { headers: { ...own, ...headers } })
}

/** Attaches a file to a record, as another resource would. */
const attach = (id: number, type: string, owner: number): Promise<unknown> =>
  server.store.db.updateTable('files').set({ owner_type: type, owner_id: owner }).where('id', '=', id).execute()

const system = (): Context => systemContext(server.app.services, 'cli')

const report = 'quarter,amount\n1,100\n'
const hash = createHash('sha256').update(report).digest('hex')

describe('uploadFile', () => {
  it('keeps the bytes, says what they are and where, and fires its pair of events', async () => {
    const { status, body, headers } = await upload(file('Report.csv', report, 'application/x-msdownload'))
    expect(status).toBe(201)
    const { id } = body.data
    expect(body).toEqual({
      data: {
        id: expect.any(Number),
        name: 'Report.csv',
        size: 21,
        content_type: 'text/csv',
        sha256: hash,
        url: `http://localhost:80/api/admin/files/${id}/download`,
        user_id: 1,
        created_at: '2026-03-01T09:30:00.000Z',
      },
      message: 'File created.',
    })
    expect(headers.location).toBe(`http://localhost:80/api/admin/files/${id}`)
    expect(server.events()).toEqual(['files.create.before', 'files.create.after'])
    expect((await server.admin.get(`/files/${id}`)).body.data).toEqual(body.data)
  })

  it('keeps the same bytes once, under either name', async () => {
    const [one, other] = [await upload(file('one.csv', report)), await upload(file('other.csv', report))]
    expect([one.body.data.sha256, other.body.data.sha256]).toEqual([hash, hash])
    expect([one.body.data.name, other.body.data.name]).toEqual(['one.csv', 'other.csv'])
    expect((await keptBytes(server)).filter((name) => name.endsWith(hash))).toEqual([`${hash.slice(0, 2)}/${hash}`])
  })

  it('tries without keeping: nothing is stored, no event fires', async () => {
    const before = await keptBytes(server)
    const { status, body } = await upload(file('try.txt', 'tried only'), server.admin, { 'accord-dry-run': 'true' })
    expect([status, body.data.name]).toEqual([200, 'try.txt'])
    expect(server.events()).toEqual([])
    expect(await keptBytes(server)).toEqual(before)
    expect((await server.admin.get(`/files/${body.data.id}`)).status).toBe(404)
  })

  it('answers a repeated request from memory, and another file under the same key with 422', async () => {
    const key = { 'idempotency-key': 'upload-1' }
    const first = await upload(file('a.txt', 'once'), server.admin, key)
    const again = await upload(file('a.txt', 'once'), server.admin, key)
    expect([again.status, again.headers['idempotency-replayed'], again.body]).toEqual([201, 'true', first.body])
    const other = await upload(file('a.txt', 'twice'), server.admin, key)
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
    expect(server.events()).toEqual(['files.create.before', 'files.create.after'])
  })

  it('needs the ability files:write, and leaves nothing on the disk of who has it not', async () => {
    const before = await keptBytes(server)
    const narrow = await server.as(1, ['files:read'])
    expect((await upload(file('a.txt', 'not mine to send'), narrow)).status).toBe(403)
    expect((await upload(file('a.txt', 'no one sent this'), server.anonymous)).status).toBe(401)
    expect(await keptBytes(server)).toEqual(before)
  })

  it('leaves no row and no bytes when a listener refuses', async () => {
    const strict = await startServer({
      extensions: [
        (events) =>
          events.on('files.create.before', () => {
            throw new Veto('not today')
          }),
      ],
    })
    const { body, headers } = await form({ file: file('a.txt', 'refused by a listener') })
    expect((await strict.admin.post('/files', body, { headers })).status).toBe(403)
    expect(await keptBytes(strict)).toEqual([])
    await strict.close()
  })
})

describe('who sees a file', () => {
  it('before it is attached: only its uploader, whatever others may do', async () => {
    const ada = await addUser(server, 'Ada', { permissions: [] })
    const { body } = await upload(file('draft.txt', 'mine'), ada)
    const path = `/files/${body.data.id}`
    expect((await ada.get(path)).status).toBe(200)
    expect((await ada.get(`${path}/download`)).text).toBe('mine')
    for (const call of [server.admin.get(path), server.admin.get(`${path}/download`), server.admin.delete(path)])
      expect((await call).status).toBe(404)
  })

  it('once attached: who sees the record, by sight, permission and ability', async () => {
    const lead = await given(server.admin).lead()
    const { id } = (await upload(file('offer.txt', 'the offer'))).body.data
    await attach(id, 'leads', lead.id)
    const path = `/files/${id}`
    const colleague = await addUser(server, 'Colleague')
    expect((await colleague.get(`${path}/download`)).text).toBe('the offer')

    const blind = await addUser(server, 'Blind', { view: 'individual' })
    const without = await addUser(server, 'Without', { permissions: ['contacts'] })
    const narrow = await server.as(1, ['files:read'])
    for (const caller of [blind, without, narrow]) {
      expect((await caller.get(path)).status).toBe(404)
      expect((await caller.get(`${path}/download`)).status).toBe(404)
    }
    expect((await (await server.as(1, ['files:read', 'leads:read'])).get(path)).status).toBe(200)
  })

  it('and no user when the record is gone', async () => {
    const { id } = (await upload(file('orphan.txt', 'orphan'))).body.data
    await attach(id, 'leads', 999)
    expect((await server.admin.get(`/files/${id}`)).status).toBe(404)
  })
})

describe('deleteFile', () => {
  it('deletes an own upload and fires its pair of events', async () => {
    const { id } = (await upload(file('a.txt', 'to go'))).body.data
    server.events()
    const { status, body } = await server.admin.delete(`/files/${id}`)
    expect([status, body.message]).toEqual([200, 'File deleted.'])
    expect(server.events()).toEqual(['files.delete.before', 'files.delete.after'])
    expect((await server.admin.get(`/files/${id}`)).status).toBe(404)
  })

  it('refuses one that belongs to a record with 409 and names the record', async () => {
    const lead = await given(server.admin).lead()
    const { id } = (await upload(file('a.txt', 'kept'))).body.data
    await attach(id, 'leads', lead.id)
    server.events()
    const { status, body } = await server.admin.delete(`/files/${id}`)
    expect([status, body.code]).toEqual([409, 'in_use'])
    expect(body.conflicts).toEqual([{ entity_type: 'leads', id: lead.id, field: null }])
    expect(server.events()).toEqual([])
  })
})

describe('downloadFile', () => {
  const get = (path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    server.inject({
      method,
      url: `/api/admin${path}`,
      headers: { authorization: `Bearer ${server.admin.token}`, ...headers },
    })

  it('sends the bytes with their type, name, length and hash', async () => {
    const { id } = (await upload(file('Jahr "26" é€.csv', report))).body.data
    const { statusCode, headers, body } = await get(`/files/${id}/download`)
    expect([statusCode, body]).toEqual([200, report])
    expect(headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-length': '21',
      'content-disposition': `attachment; filename="Jahr _26_ e_.csv"; filename*=UTF-8''Jahr%20%2226%22%20%C3%A9%E2%82%AC.csv`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'private, no-cache',
      'accept-ranges': 'bytes',
      etag: `"${hash}"`,
    })
  })

  it.each([
    ['dot.png', pixel, 'image/png', 'inline'],
    ['paper.pdf', Buffer.from('%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n'), 'application/pdf', 'inline'],
    ['page.html', '<script>alert(1)</script>', 'text/html; charset=utf-8', 'attachment'],
    ['drawing.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml', 'attachment'],
    ['data.bin', Buffer.from([0, 1, 2, 3, 255]), 'application/octet-stream', 'attachment'],
  ])('shows %s only if it is a picture or a PDF', async (name, content, type, disposition) => {
    const { id } = (await upload(file(name, content))).body.data
    const { headers, rawPayload } = await get(`/files/${id}/download`)
    expect(headers['content-type']).toBe(type)
    expect(String(headers['content-disposition']).split(';')[0]).toBe(disposition)
    expect(rawPayload).toEqual(Buffer.from(content))
  })

  it.each([
    ['bytes=0-6', '206', 'quarter', 'bytes 0-6/21'],
    ['bytes=15-', '206', '1,100\n', 'bytes 15-20/21'],
    ['bytes=-4', '206', '100\n', 'bytes 17-20/21'],
    ['bytes=-99', '206', report, 'bytes 0-20/21'],
    ['bytes=8-99', '206', 'amount\n1,100\n', 'bytes 8-20/21'],
    ['bytes=0-1,4-5', '200', report, undefined],
    ['bytes=9-2', '200', report, undefined],
    ['lines=1-2', '200', report, undefined],
  ])('answers Range: %s with %s', async (range, status, text, contentRange) => {
    const { id } = (await upload(file('r.csv', report))).body.data
    const { statusCode, headers, body } = await get(`/files/${id}/download`, { range })
    expect([String(statusCode), body, headers['content-range']]).toEqual([status, text, contentRange])
    expect(headers['content-length']).toBe(String(text.length))
  })

  it.each(['bytes=21-', 'bytes=500-600', 'bytes=-0'])(
    'refuses Range: %s with 416 and says how much there is',
    async (range) => {
      const { id } = (await upload(file('r.csv', report))).body.data
      const { statusCode, headers, json } = await get(`/files/${id}/download`, { range })
      expect([statusCode, json().code, headers['content-range']]).toEqual([416, 'range_not_satisfiable', 'bytes */21'])
      expect(headers['content-disposition']).toBeUndefined()
    },
  )

  it('sends all of it when the range is of other bytes, and nothing when they are known', async () => {
    const { id } = (await upload(file('r.csv', report))).body.data
    const range = { range: 'bytes=0-6' }
    expect((await get(`/files/${id}/download`, { ...range, 'if-range': '"other"' })).statusCode).toBe(200)
    expect((await get(`/files/${id}/download`, { ...range, 'if-range': `"${hash}"` })).statusCode).toBe(206)
    const known = await get(`/files/${id}/download`, { 'if-none-match': `"${hash}"` })
    expect([known.statusCode, known.body]).toEqual([304, ''])
  })

  it('answers HEAD with the same headers and no bytes', async () => {
    const { id } = (await upload(file('r.csv', report))).body.data
    const { statusCode, headers, body } = await get(`/files/${id}/download`, { range: 'bytes=0-6' }, 'HEAD')
    expect([statusCode, body, headers['content-length']]).toEqual([200, '', '21'])
    expect(headers['content-disposition']).toContain('r.csv')
  })
})

describe('downloadSignedFile', () => {
  it('needs no token, for five minutes and this file alone', async () => {
    const { id } = (await upload(file('a.txt', 'in a mail'))).body.data
    const { id: other } = (await upload(file('b.txt', 'another'))).body.data
    const url = signedUrl({ ...system(), baseUrl: '' }, id)
    const asked = (path: string) => server.anonymous.get(`/${path}`)
    expect((await asked(url)).text).toBe('in a mail')
    expect((await asked(url.replace(`/files/${id}/`, `/files/${other}/`))).body.code).toBe('forbidden')
    expect((await asked(url.replace(/expires=\d+/, 'expires=99999999999'))).body.code).toBe('forbidden')
    expect((await asked(url.replace(/signature=..../, 'signature=beef'))).status).toBe(403)
    expect((await asked(url.replace(/&signature=.*/, ''))).status).toBe(422)
    server.clock.advanceMs(5 * 60_000)
    expect((await asked(url)).status).toBe(200)
    server.clock.advanceMs(1000)
    expect((await asked(url)).status).toBe(403)
  })
})

describe('files of records', () => {
  it('attaching takes an upload as it is, and copies what belongs to another record', async () => {
    const { id } = (await upload(file('a.txt', 'shared'))).body.data
    const ctx = system()
    expect(await attachFile(ctx, id, { type: 'leads', id: 1 })).toBe(id)
    expect(await attachFile(ctx, id, { type: 'leads', id: 1 })).toBe(id)
    const copy = await attachFile(ctx, id, { type: 'quotes', id: 1 })
    expect(copy).not.toBe(id)
    const refs = await fileRefs(ctx, [id, copy])
    expect([refs.get(id)?.name, refs.get(copy)?.name]).toEqual(['a.txt', 'a.txt'])
    await releaseFiles(ctx, { type: 'leads', id: 1 })
    expect([...(await fileRefs(ctx, [id, copy])).keys()]).toEqual([copy])
  })
})

describe('uploads that belong to no record', () => {
  beforeEach(() => rmSync(join(server.app.services.config.dataDir, 'files'), { recursive: true, force: true }))
  const sized = (number: number, bytes: number): Promise<{ status: number; body: any }> =>
    upload(file(`${number}.txt`, `${number} `.padEnd(bytes, 'x')))
  const limit = (changes: object): void => {
    Object.assign(server.app.services.config, changes)
  }
  afterEach(() => limit({ uploadLimitMb: 1024, uploadUserLimitMb: 100 }))

  it('take no more than the limit of their user, however many come at the same time', async () => {
    limit({ uploadUserLimitMb: 1 })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => sized(number, 100 * 1024)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    const refused = answers.filter(({ status }) => status === 413)
    expect(refused).toHaveLength(10)
    expect(refused[0]?.body).toMatchObject({
      code: 'payload_too_large',
      detail: expect.stringMatching(
        /^Your unattached uploads may have 1 MiB in total\. Attach some to records or delete them;/,
      ),
    })
    expect(await keptBytes(server)).toHaveLength(10)
    // Attached and deleted files do not count toward the limit.
    const lead = await given(server.admin).lead()
    const [first, second] = answers.filter(({ status }) => status === 201).map(({ body }) => body.data.id)
    await attach(first, 'leads', lead.id)
    expect((await sized(30, 100 * 1024)).status).toBe(201)
    expect((await sized(31, 100 * 1024)).status).toBe(413)
    await server.admin.delete(`/files/${second}`)
    expect((await sized(31, 100 * 1024)).status).toBe(201)
  })

  it('take no more than the limit of all, and count as 16 KiB at least', async () => {
    limit({ uploadLimitMb: 1 })
    for (let number = 0; number < 64; number++) expect((await sized(number, 10)).status).toBe(201)
    const { status, body } = await sized(64, 10)
    expect([status, body.detail]).toEqual([
      413,
      expect.stringContaining('unattached uploads of all users may have 1 MiB'),
    ])
  })

  it('leave no bytes behind when they are deleted, unless another file shares them', async () => {
    const lead = await given(server.admin).lead()
    const [own, attached] = [
      (await upload(file('a.txt', 'shared'))).body.data,
      (await upload(file('b.txt', 'shared'))).body.data,
    ]
    await attach(attached.id, 'leads', lead.id)
    const single = (await upload(file('c.txt', 'single'))).body.data
    for (const { id } of [own, single]) expect((await server.admin.delete(`/files/${id}`)).status).toBe(200)
    expect((await keptBytes(server)).map((name) => name.slice(3))).toEqual([own.sha256])
  })
})

describe('cleaning up', () => {
  // Removes bytes that the previous test left.
  beforeEach(() => rmSync(join(server.app.services.config.dataDir, 'files'), { recursive: true, force: true }))

  it('leaves the files of a deleted record as long as it can be restored, and then removes them', async () => {
    const lead = await given(server.admin).lead()
    const { id } = (await upload(file('a.txt', 'waits for its lead'))).body.data
    await attach(id, 'leads', lead.id)
    await server.admin.delete(`/leads/${lead.id}`)
    server.events()
    for (const days of [2, 27]) {
      server.clock.advanceMs(days * 24 * 3_600_000)
      expect((await cleanFiles(system())).files).toBe(0)
    }
    server.clock.advanceMs(2 * 24 * 3_600_000)
    expect((await cleanFiles(system())).files).toBe(1)
    expect(server.events()).toEqual(['files.delete.before', 'files.delete.after'])
  })

  it('removes uploads not attached within a day, with system events, and unreferenced bytes', async () => {
    const lead = await given(server.admin).lead()
    const kept = (await upload(file('kept.txt', 'kept bytes'))).body.data
    await attach(kept.id, 'leads', lead.id)
    await upload(file('old.txt', 'forgotten bytes'))
    server.clock.set('2999-01-01T00:00:00.000Z')
    const young = (await upload(file('young.txt', 'young bytes'))).body.data
    server.events()
    server.seen.length = 0
    const done = await cleanFiles(system())
    expect(done.files).toBe(1)
    expect(server.seen.map(({ name, actor }) => [name, actor.type])).toEqual([
      ['files.delete.before', 'system'],
      ['files.delete.after', 'system'],
    ])
    expect((await keptBytes(server)).map((name) => name.slice(3)).sort()).toEqual([kept.sha256, young.sha256].sort())
    expect(await cleanFiles(system())).toMatchObject({ files: 0, bytes: 0, deleted: 0 })
  })
  it('leaves bytes alone that belong to no record when they are more than a tenth of all', async () => {
    for (let number = 0; number < 20; number++) await upload(file(`${number}.txt`, `bytes ${number}`))
    server.clock.set('2100-01-01T00:00:00.000Z')
    // Simulates a database that does not belong to the files.
    await server.store.db.deleteFrom('files').execute()
    expect(await cleanFiles(system())).toMatchObject({ bytes: 0, left: 20 })
    expect(await keptBytes(server)).toHaveLength(20)
    expect(await cleanFiles(system(), { all: true })).toMatchObject({ bytes: 20, left: 0, deleted: 0 })
    expect(await keptBytes(server)).toHaveLength(0)
  })

  it('moves up to ten of a few files without being told to', async () => {
    for (let number = 0; number < 10; number++) await upload(file(`${number}.txt`, `bytes ${number}`))
    server.clock.set('2100-01-01T00:00:00.000Z')
    await server.store.db.deleteFrom('files').execute()
    expect(await cleanFiles(system())).toMatchObject({ bytes: 10, left: 0 })
  })

  it('moves bytes to the trash, brings back those that a record refers to, and deletes the rest after seven days', async () => {
    const lead = await given(server.admin).lead()
    const [wanted, other] = [
      (await upload(file('a.txt', 'wanted again'))).body.data,
      (await upload(file('b.txt', 'not wanted'))).body.data,
    ]
    await attach(wanted.id, 'leads', lead.id)
    const rows = await server.store.db.selectFrom('files').selectAll().where('id', '=', wanted.id).execute()
    await server.store.db.deleteFrom('files').execute()
    server.clock.set('2100-01-01T00:00:00.000Z')
    expect(await cleanFiles(system())).toMatchObject({ bytes: 2, deleted: 0 })
    // Simulates the return of the right database.
    await server.store.db.insertInto('files').values(rows).execute()
    expect((await server.admin.get(`/files/${wanted.id}/download`)).text).toBe('wanted again')
    expect(await cleanFiles(system())).toMatchObject({ broughtBack: 1, deleted: 0 })
    expect((await keptBytes(server)).map((name) => name.slice(3))).toEqual([wanted.sha256])
    expect(await server.app.services.files.inTrash()).toMatchObject([{ sha256: other.sha256 }])
    server.clock.advanceMs(7 * 24 * 3_600_000)
    expect(await cleanFiles(system())).toMatchObject({ deleted: 0 })
    server.clock.advanceMs(1)
    expect(await cleanFiles(system())).toMatchObject({ deleted: 1 })
    expect(await server.app.services.files.inTrash()).toEqual([])
  })
})
