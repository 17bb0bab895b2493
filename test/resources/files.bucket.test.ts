// Files in a bucket (ACCORD_FILES_URL) behave like files on disk: uploads, downloads, e-mails,
// refused requests, deletion and cleanup. While the bucket fails, only requests that need the bytes
// get 503.
import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemContext } from '../../src/kernel/context.ts'
import { cleanFiles } from '../../src/resources/files/clean-up.ts'
import { startServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { bucketSettings, startS3 } from '../support/s3.ts'
import { useOne, useServer } from '../support/using.ts'

const lines: string[] = []
const s3 = useOne(startS3)
const server = useServer(
  () => ({ config: bucketSettings(s3), lines: { write: (line) => void lines.push(line) } }),
  ({ clock }) => {
    s3.now = clock.now
  },
)
beforeEach(() => {
  s3.objects.clear()
  s3.requests.length = 0
  lines.length = 0
})
afterEach(async () => expect(await drafts()).toEqual([]))

const drafts = (): Promise<string[]> =>
  readdir(join(server.app.services.config.dataDir, 'files', 'tmp')).catch(() => [])
const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
const keyOf = (bytes: string | Buffer): string => `crm/${hashOf(bytes).slice(0, 2)}/${hashOf(bytes)}`
const trashKeyOf = (bytes: string): string => `crm/trash/${hashOf(bytes)}`
const keys = (): string[] => [...s3.objects.keys()].sort()

async function upload(name: string, content: string | Buffer, headers: Record<string, string> = {}) {
  const { body, headers: own } = await form({ file: file(name, content) })
  return server.admin.post('/files', body, { headers: { ...own, ...headers } })
}
const clean = () => cleanFiles(systemContext(server.app.services, 'cli'))

describe('an upload', () => {
  it('is in the bucket when it is answered, is stored once, and comes back whole and in part', async () => {
    const bytes = randomBytes(200_000)
    const [one, other] = [await upload('one.bin', bytes), await upload('other.bin', bytes)]
    expect([one.status, other.status, keys()]).toEqual([201, 201, [keyOf(bytes)]])
    expect(s3.objects.get(keyOf(bytes))?.bytes.equals(bytes)).toBe(true)
    const { id } = one.body.data
    const whole = await server.admin.get(`/files/${id}/download`)
    expect([whole.status, whole.headers['content-length']]).toEqual([200, '200000'])
    const part = await server.admin.get(`/files/${id}/download`, { headers: { range: 'bytes=100-199' } })
    expect([part.status, part.headers['content-range']]).toEqual([206, 'bytes 100-199/200000'])
  })

  it('is sent to the bucket before the transaction begins, which then only asks for it', async () => {
    await upload('plan.txt', 'the plan')
    // Each attempt of a transaction that conflicts asks again; none sends anything.
    const requests = isPostgres ? [...new Set(s3.requests)] : s3.requests
    expect(requests).toEqual([`PUT ${keyOf('the plan')}`, `HEAD ${keyOf('the plan')}`])
    expect(s3.requests.filter((each) => each.startsWith('PUT'))).toHaveLength(1)
  })

  it('leaves nothing but trash when the request is refused, tried, or vetoed', async () => {
    expect((await upload('empty.txt', '')).status).toBe(422)
    expect((await upload('try.txt', 'tried', { 'accord-dry-run': 'true' })).status).toBe(200)
    server.app.services.config.uploadUserLimitMb = 0
    expect((await upload('more.txt', 'over the quota')).status).toBe(413)
    server.app.services.config.uploadUserLimitMb = 100
    expect(keys().filter((key) => !key.startsWith('crm/trash/'))).toEqual([])
  })

  it('shares bytes with others, and moves them to the trash with the last file', async () => {
    const [one, other] = [await upload('one.txt', 'shared'), await upload('other.txt', 'shared')]
    await server.admin.delete(`/files/${one.body.data.id}`)
    expect(keys()).toEqual([keyOf('shared')])
    await server.admin.delete(`/files/${other.body.data.id}`)
    expect(keys()).toEqual([trashKeyOf('shared')])
  })

  it('on one server can be read on another server', async () => {
    const { id } = (await upload('shared.txt', 'on both')).body.data
    const second = await startServer({ config: bucketSettings(s3), open: () => server.store })
    try {
      const reply = await second.caller(server.admin.token).get(`/files/${id}/download`)
      expect([reply.status, reply.text]).toEqual([200, 'on both'])
    } finally {
      await second.app.http.close()
    }
  })
})

describe('an e-mail', () => {
  it('that comes in brings its attachments and its original into the bucket', async () => {
    const mail = [
      'From: ada@example.org',
      'To: crm@example.com',
      'Subject: Plan',
      'Message-ID: <plan@example.org>',
      'Content-Type: multipart/mixed; boundary=x',
      '',
      '--x',
      'Content-Type: text/plain; name=plan.txt',
      'Content-Disposition: attachment; filename=plan.txt',
      '',
      'the plan',
      '--x--',
      '',
    ].join('\r\n')
    const { body, headers } = await form({ email: mail })
    const reply = await server.anonymous.post('//admin/mail/inbound-parse', body, { headers })
    expect([reply.status, reply.body.message]).toEqual([200, 'E-mail received.'])
    const stored = [...s3.objects.values()].map(({ bytes }) => bytes.toString().trim())
    expect(stored.sort()).toEqual([expect.stringMatching(/^From: ada@example.org[\s\S]*--x--$/), 'the plan'])
  })
})

describe('the clean-up', () => {
  it('moves bytes without a record to the trash, keeps young ones, and empties the trash by age', async () => {
    const { id } = (await upload('used.txt', 'used')).body.data
    await server.store.db
      .updateTable('files')
      .set({ owner_type: 'leads', owner_id: (await given(server.admin).lead()).id })
      .where('id', '=', id)
      .execute()
    const put = (bytes: string, modified: string): void =>
      void s3.objects.set(keyOf(bytes), { bytes: Buffer.from(bytes), modified: new Date(modified), contentType: '' })
    put('orphan', '2026-02-28T00:00:00Z')
    put('young', '2026-03-01T09:00:00Z')
    expect(await clean()).toMatchObject({ files: 0, bytes: 1, deleted: 0 })
    expect(keys()).toEqual([keyOf('used'), keyOf('young'), `crm/trash/${hashOf('orphan')}`].sort())
    server.clock.set('2026-03-09T09:30:00Z')
    expect(await clean()).toMatchObject({ bytes: 1, deleted: 1 })
    expect(keys()).toEqual([keyOf('used'), `crm/trash/${hashOf('young')}`].sort())
  })

  it('brings bytes back from the trash that a record names, and serves them meanwhile', async () => {
    const { id } = (await upload('used.txt', 'wanted')).body.data
    await server.app.services.files.moveToTrash(hashOf('wanted'), new Date())
    expect((await server.admin.get(`/files/${id}/download`)).text).toBe('wanted')
    expect(await clean()).toMatchObject({ broughtBack: 1 })
    expect(keys()).toEqual([keyOf('wanted')])
  })
})

describe('a bucket that fails', () => {
  const unavailable = { status: 503, body: { code: 'unavailable' }, headers: { 'retry-after': '5' } }
  const checks = async () => {
    // The server caches the state for five seconds.
    server.clock.advanceMs(6_000)
    const { status, body } = await server.anonymous.get('//readyz')
    return [status, body.checks.files]
  }

  it('costs the requests for bytes a 503, no other request, and no restart', async () => {
    const { id } = (await upload('plan.txt', 'the plan')).body.data
    expect(await checks()).toEqual([200, 'ok'])
    await s3.stop()
    expect(await server.admin.get(`/files/${id}/download`)).toMatchObject(unavailable)
    expect(await upload('other.txt', 'other')).toMatchObject(unavailable)
    expect(await server.store.db.selectFrom('files').select('id').execute()).toEqual([{ id }])
    expect((await server.admin.get('/files/999')).status).toBe(404)
    expect((await server.admin.get(`/files/${id}`)).status).toBe(200)
    expect((await server.admin.get(`/leads/${(await given(server.admin).lead()).id}`)).status).toBe(200)
    expect(await checks()).toEqual([200, 'failing'])
    expect((await server.admin.delete(`/files/${id}`)).status).toBe(200)
    await s3.start()
    expect(await checks()).toEqual([200, 'ok'])
    expect((await upload('other.txt', 'other')).status).toBe(201)
    expect(lines.join('')).toContain('The file storage s3://crm-files/crm failed: ECONNREFUSED')
    // The cleanup removes the bytes of the deleted file later.
    expect(keys()).toEqual([keyOf('other'), keyOf('the plan')].sort())
  })

  it('is not asked to store anything by a request that it cannot take part in', async () => {
    s3.fail({ status: 403, code: 'AccessDenied', times: 1, method: 'PUT' })
    expect(await upload('plan.txt', 'denied')).toMatchObject(unavailable)
    expect(server.events()).toEqual([])
    expect(await server.store.db.selectFrom('files').select('id').execute()).toEqual([])
    expect(lines.join('')).toContain('AccessDenied (403)')
    expect(lines.join('')).not.toMatch(/quoted-by-s3|EXAMPLEKEY/)
  })
})
