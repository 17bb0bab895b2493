// The packed program uses every package that it loads on demand: the bundle contains them as chunks
// that no other test of the program loads. drawing.test.ts has PDFs and charts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { useFolder } from '../support/folders.ts'
import { file, form } from '../support/form.ts'
import { startImap } from '../support/imap.ts'
import { openMailbox } from '../support/mailbox.ts'
import { startS3 } from '../support/s3.ts'
import { useOne } from '../support/using.ts'

const folder = useFolder('packed')
let serving: Serving
let token: string
let environment: Record<string, string>
const password = 'a long enough one'

const s3 = useOne(startS3)
const imap = useOne(startImap)
const mailbox = useOne(openMailbox)
beforeAll(async () => {
  const raw =
    'From: Ada <ada@example.com>\r\nTo: crm@example.com\r\nSubject: By IMAP\r\nMessage-ID: <1@example.com>\r\n\r\nHello\r\n'
  imap.folder('INBOX').messages.push({ uid: 1, raw: Buffer.from(raw), date: new Date(), flags: [] })
  environment = {
    ACCORD_ADMIN_PASSWORD: password,
    ACCORD_FILES_URL: `s3://${s3.bucket}/crm`,
    ACCORD_S3_ENDPOINT: s3.endpoint,
    ACCORD_S3_ACCESS_KEY_ID: s3.accessKeyId,
    ACCORD_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    ACCORD_IMAP_HOST: imap.host,
    ACCORD_IMAP_PORT: String(imap.port),
    ACCORD_IMAP_ENCRYPTION: 'none',
    ACCORD_IMAP_USERNAME: imap.username,
    ACCORD_IMAP_PASSWORD: imap.password,
    ACCORD_SMTP_URL: mailbox.url,
    MAIL_RECEIVER_DRIVER: 'webklex-imap',
  }
  serving = await accordServing(folder, 'start', environment)
  const login = { email: 'admin@example.com', password, device_name: 'test' }
  token = (await (await call('POST', '/login', login)).json()).data.token
})
afterAll(async () => {
  await serving?.stop()
})

function call(method: string, path: string, body?: object, accept = 'application/json'): Promise<Response> {
  const headers = { accept, ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' }
  return fetch(`${serving.url}/api/admin${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
}

async function upload(name: string, bytes: Buffer): Promise<Response> {
  const { body, headers } = await form({ file: file(name, bytes) })
  const authorization = `Bearer ${token}`
  return fetch(`${serving.url}/api/admin/files`, {
    ...{ method: 'POST', body: new Blob([Uint8Array.from(body)]) },
    headers: { ...headers, accept: 'application/json', authorization },
  })
}

/** Returns the analysis of a file for an import of organizations, as text. */
async function analyse(name: string, bytes: Buffer): Promise<string> {
  const { data: uploaded } = await (await upload(name, bytes)).json()
  const about = { type: 'organizations', action: 'append', validation_strategy: 'stop-on-errors' }
  const made = await call('POST', '/settings/data-transfer/imports', { ...about, file_id: uploaded.id })
  expect(made.status, await made.clone().text()).toBe(201)
  const { data } = await made.json()
  return (await call('GET', `/settings/data-transfer/imports/${data.id}/analysis`)).text()
}

describe('the packed program', () => {
  it('recognizes a file by its content, and stores it in a bucket', async () => {
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    const answer = await upload('dot.png', png)
    expect([answer.status, (await answer.json()).data.content_type]).toEqual([201, 'image/png'])
    expect(s3.objects.size).toBe(1)
  })

  it('writes a workbook, and reads its rows for an import', async () => {
    await call('POST', '/contacts/organizations', { name: 'Müller & Söhne' })
    const book = await call('GET', '/contacts/organizations/export?format=xlsx', undefined, '*/*')
    expect(book.status).toBe(200)
    const analysis = await analyse('organizations.xlsx', Buffer.from(await book.arrayBuffer()))
    expect(analysis).toContain('Müller & Söhne')
  })

  it('reads a text in windows-1252', async () => {
    const text = Buffer.from('Name\nM\xfcller und S\xf6hne\nCaf\xe9 H\xe9l\xe8ne\n', 'latin1')
    expect(await analyse('names.csv', text)).toContain('Müller und Söhne')
  })

  it('shows a guide, and metrics', async () => {
    const guide = await call('GET', '/documentation/guides/imports', undefined, 'text/html')
    expect([guide.status, (await guide.text()).includes('<h2')]).toEqual([200, true])
    const metrics = await fetch(`${serving.url}/metrics`)
    expect(await metrics.text()).toContain('nodejs_eventloop_lag')
  })

  it('polls a mailbox, and sends an e-mail', async () => {
    const subjects = async () =>
      ((await (await call('GET', '/emails')).json()).data as { subject: string }[]).map(({ subject }) => subject)
    const polled = await accord(folder, ['inbound-emails:process'], environment)
    expect(polled.code, polled.stderr).toBe(0)
    expect(await subjects()).toContain('By IMAP')
    const sent = await call('POST', '/emails', {
      to: ['ada@example.com'],
      subject: 'Sent',
      html: '<p>Hello</p>',
    })
    expect(sent.status, await sent.clone().text()).toBeLessThan(300)
  }, 120_000)
})
