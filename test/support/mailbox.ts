// Reads outgoing mail from the folder that a `file:` SMTP URL names, and parses each mail. Also
// builds incoming mails.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseMail, type ReceivedMail } from '../../src/mail/parse/parse.ts'

export interface Mailbox {
  /** The value for ACCORD_SMTP_URL. */
  url: string
  /** Returns the mails since the last call. */
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

/** Returns an incoming mail with these headers. */
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

/** Returns the first link in a mail. */
export const linkIn = (mail: ReceivedMail | undefined): URL =>
  new URL(/https?:\/\/\S+/.exec(mail?.text ?? '')?.[0] ?? 'none:')
