// A local server that shows the e-mails in the demo's mail folder, and that receives and shows the
// demo's webhooks.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isLoopbackName } from '../../config/sign-in-hosts.ts'
import { systemClock } from '../../kernel/runtime/clock.ts'
import { parseMail } from '../../mail/parse/parse.ts'
import { CommandError } from '../command-error.ts'
import {
  type CaughtMail,
  type CaughtWebhook,
  mailBodyPage,
  mailPage,
  mailsPage,
  type Page,
  webhooksPage,
} from './catcher-pages.ts'

export interface Catcher {
  url: string
  close(): Promise<void>
}

/** The maximum size of a webhook body in bytes, and the maximum number of webhooks on the page. */
const maxBytes = 1024 * 1024
const maxWebhooks = 200

export async function startCatcher(options: { host: string; port: number; mails: string }): Promise<Catcher> {
  const webhooks: CaughtWebhook[] = []
  const server = createServer((request, response) => {
    answer(request, options.mails, webhooks).then(
      (page) => send(response, page),
      () => send(response, { status: 500, html: 'The page cannot be shown.' }),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'EADDRINUSE'
          ? new CommandError(
              `Port ${options.port}, for the e-mails and webhooks, is taken. Choose another one with --port.`,
              cause,
            )
          : cause,
      ),
    )
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(request: IncomingMessage, mails: string, webhooks: CaughtWebhook[]): Promise<Page> {
  // Only loopback host names are accepted. Otherwise a site could read the e-mails through DNS
  // rebinding.
  const host = request.headers.host ?? ''
  if (!URL.canParse(`http://${host}`) || !isLoopbackName(new URL(`http://${host}`).hostname))
    return { status: 421, html: 'Call this page by 127.0.0.1.' }
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  if (request.method === 'POST' && pathname === '/webhooks') return catchWebhook(request, webhooks)
  if (request.method !== 'GET') return { status: 405, html: 'Only GET is possible here.' }
  if (pathname === '/webhooks') return webhooksPage(webhooks)
  const [, id, part] = /^\/mails\/([^/]+)(\/body)?$/.exec(pathname) ?? []
  if (id !== undefined) {
    const mail = await readMail(mails, decodeURIComponent(id))
    if (mail === null) return { status: 404, html: 'There is no such e-mail.' }
    return part === undefined ? mailPage(mail) : mailBodyPage(mail)
  }
  if (pathname === '/mails' || pathname === '/') return mailsPage(await readMails(mails))
  return { status: 404, html: 'There is nothing at this path.' }
}

async function catchWebhook(request: IncomingMessage, webhooks: CaughtWebhook[]): Promise<Page> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) return { status: 413, html: 'The webhook is too large.' }
    chunks.push(chunk)
  }
  webhooks.unshift({ at: systemClock.now(), headers: request.headers, body: Buffer.concat(chunks).toString() })
  webhooks.splice(maxWebhooks)
  return { status: 200, html: 'Caught.' }
}

const namesIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => /^[^.].*\.eml$/.test(name)) : []

/** Returns the e-mails, newest first. */
async function readMails(folder: string): Promise<CaughtMail[]> {
  const found = await Promise.all(namesIn(folder).map((name) => readMail(folder, name)))
  return found.filter((mail) => mail !== null).sort((a, b) => b.at.localeCompare(a.at))
}

/** Returns an e-mail; null when the folder has no file with this name. */
async function readMail(folder: string, name: string): Promise<CaughtMail | null> {
  if (!namesIn(folder).includes(name)) return null
  const { from, to, cc, subject, date, text, html, attachments } = await parseMail(
    readFileSync(join(folder, name)),
    {},
    { isMail: true },
  )
  return {
    id: name,
    at: date?.toISOString() ?? '',
    from: from?.name ? `${from.name} <${from.address}>` : (from?.address ?? ''),
    to: [...to, ...cc].join(', '),
    subject: subject ?? '',
    text: text ?? '',
    html: html ?? null,
    attachments: attachments.map((each) => each.name),
  }
}

function send(response: ServerResponse, { status, html, policy }: Page): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': policy ?? "default-src 'none'; frame-ancestors 'none'",
  })
  response.end(html)
}
