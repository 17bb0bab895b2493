// The mail folder of development as a test reads it: outgoing mail is written into a folder, and
// each mail is parsed as a mail program would. Also builds a mail as such a program sends it.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseMail, type ReceivedMail } from '../../src/mail/parse/parse.ts'

export interface Mailbox {
  /** The value for ACCORD_SMTP_URL. */
  url: string
  /** The mails that arrived since the last call. */
  take(): Promise<ReceivedMail[]>
  close(): void
}

export function openMailbox(): Mailbox {
  const folder = mkdtempSync(join(tmpdir(), 'accord-mailbox-'))
  return {
    url: `file:${folder}`,
    async take() {
      const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.eml')) : []
      const mails = await Promise.all(names.map((name) => parseMail(readFileSync(join(folder, name)))))
      for (const name of names) rmSync(join(folder, name))
      return mails
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A mail from outside with these headers. */
export const letter = (about: { id: string; from?: string; to?: string; subject?: string; more?: string[] }): string =>
  [
    `Message-ID: <${about.id}>`,
    `From: ${about.from ?? 'Ada <ada@example.com>'}`,
    `To: ${about.to ?? 'crm@localhost'}`,
    `Subject: ${about.subject ?? 'Hello'}`,
    ...(about.more ?? []),
    '',
    'Good morning',
  ].join('\r\n')

/** The first link in a mail. */
export const linkIn = (mail: ReceivedMail | undefined): URL =>
  new URL(/https?:\/\/\S+/.exec(mail?.text ?? '')?.[0] ?? 'none:')
