// The mailer for development. It writes each e-mail as an .eml file into a folder and sends
// nothing.
import { randomUUID } from 'node:crypto'
import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MailDeferred } from './failures.ts'
import type { Mailer } from './mailer.ts'
import { compose } from './message.ts'

/**
 * Returns the mailer for a folder. The URL is `file:mails`, `file:/var/mails` or
 * `file:///var/mails`.
 */
export function folderMailer(url: string): Mailer {
  const path = url.slice('file:'.length)
  if (path === '') throw new Error('The address for outgoing mail must name a folder after file:.')
  const folder = path.startsWith('//') ? fileURLToPath(url) : resolve(path)
  return {
    isConfigured: true,
    check: async () => {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await access(folder, constants.W_OK)
        return null
      } catch {
        return 'Outgoing mail: the folder for it cannot be written.'
      }
    },
    send: async (message, signal) => {
      const { raw } = await compose(message)
      if (signal.aborted) throw new MailDeferred('Sending was stopped.')
      const name = `${message.messageId.replaceAll(/[^A-Za-z0-9@._+-]|^\./g, '_').slice(0, 200)}.eml`
      const draft = join(folder, `.${randomUUID()}`)
      try {
        // An e-mail may contain the link that resets a password.
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await writeFile(draft, raw, { flag: 'wx', mode: 0o600 })
        await rename(draft, join(folder, name))
      } catch (cause) {
        await rm(draft, { force: true }).catch(() => undefined)
        throw new MailDeferred('The e-mail could not be written to its folder.', { cause })
      }
      return { response: `Written as ${name}.`, refused: [] }
    },
    close: () => undefined,
  }
}
