// Combines the settings of the polled mailbox. Each configured value overrides the
// value from the environment. A password is used only for the connection that it was set for.
import type { Config } from '../../config/config.ts'
import { DecryptionError } from '../../kernel/auth/encryption.ts'
import type { Context } from '../../kernel/context.ts'
import type { MailboxSettings } from '../../mail/imap.ts'
import type { ConfigurationCode } from './keys.ts'
import { storedValues } from './values.ts'

/** The settings that identify the mail server and the account. */
export type Connection = Pick<Config['imap'], 'host' | 'port' | 'encryption' | 'validateCert' | 'username'>

export const passwordCode = 'email.imap.account.password' satisfies ConfigurationCode

export function mailboxConnection({ imap }: Config, stored: ReadonlyMap<string, unknown>): Connection {
  const setting = <T>(name: string, initial: T): T => (stored.get(`email.imap.account.${name}`) as T) ?? initial
  return {
    host: setting('host', imap.host),
    port: setting('port', imap.port),
    encryption: setting('encryption', imap.encryption),
    validateCert: setting('validate_cert', imap.validateCert),
    username: setting('username', imap.username),
  }
}

export const isSameConnection = (one: Connection, other: Connection): boolean =>
  one.host === other.host &&
  one.port === other.port &&
  one.encryption === other.encryption &&
  one.validateCert === other.validateCert &&
  one.username === other.username

/** Returns the settings of the mailbox, or a sentence that says why no mailbox can be polled. */
export async function configuredMailbox(ctx: Context): Promise<MailboxSettings | string> {
  const { config, encryption } = ctx.services
  // All values come from one query. Between two queries, a concurrent save could replace the
  // connection, and the password would be sent to the wrong server.
  const stored = await storedValues(ctx)
  const { host, username, ...connection } = mailboxConnection(config, stored)
  if (!host || !username) return 'No mailbox is set: host, user name and password are needed.'
  const sealed = stored.get(passwordCode)
  if (typeof sealed === 'string') {
    try {
      return { ...connection, host, username, password: encryption.decrypt(sealed) }
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error
      return 'The password of the mailbox cannot be read: it was stored with another ACCORD_SECRET. Set it again.'
    }
  }
  const { password } = config.imap
  if (password === null) return 'No mailbox is set: host, user name and password are needed.'
  if (!isSameConnection(config.imap, { ...connection, host, username }))
    return 'The configuration and the environment name different mailboxes, so ACCORD_IMAP_PASSWORD is not used. Set the password in the configuration.'
  return { ...connection, host, username, password }
}
