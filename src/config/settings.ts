// Every setting of config.ts with its default and one sentence: the text of a new .env, and the table in the README. A
// test keeps this list, config.ts and the README the same.

export interface Setting {
  name: string
  /** As written in .env; empty when there is none. */
  value: string
  /** The default in words, where it is not a fixed value. */
  otherwise?: string
  meaning: string
}

export const settings: readonly { title: string; settings: readonly Setting[] }[] = [
  {
    title: 'Where it listens',
    settings: [
      {
        name: 'ACCORD_HOST',
        value: '127.0.0.1',
        meaning: 'Address to listen on. 0.0.0.0 for every address of the machine.',
      },
      { name: 'ACCORD_PORT', value: '8000', meaning: 'Port to listen on. 0 takes a free one.' },
      {
        name: 'ACCORD_APP_URL',
        value: '',
        otherwise: 'the host of each request',
        meaning: 'External base URL, when the server stands behind a proxy.',
      },
      {
        name: 'ACCORD_APP_NAME',
        value: 'Accord CRM',
        meaning: 'Name on the login and documentation pages and of the sender of mails.',
      },
      {
        name: 'ACCORD_STATEFUL_DOMAINS',
        value: '',
        otherwise: 'localhost, 127.0.0.1, [::1], the host of ACCORD_APP_URL',
        meaning:
          'Hosts people may sign in from, comma-separated, without scheme; * matches any characters. A value replaces the default.',
      },
      {
        name: 'ACCORD_TRUSTED_PROXIES',
        value: '',
        otherwise: 'none',
        meaning:
          'Addresses or CIDR ranges of proxies whose X-Forwarded-* headers are believed; malformed ones answer 400.',
      },
      {
        name: 'ACCORD_CORS_ORIGINS',
        value: '',
        otherwise: 'none',
        meaning:
          'Origins of other web pages that may call with cookies or tokens, comma-separated, such as https://app.example.com.',
      },
      {
        name: 'ACCORD_REPLY_MEMORY_MB',
        value: '64',
        meaning: 'Memory for replies that are kept until something changes; 0 keeps none.',
      },
      {
        name: 'ACCORD_COMMIT_GROUP_MS',
        value: '10',
        meaning: 'How long at most writes that come together wait to share one commit; 0: each has its own.',
      },
      {
        name: 'ACCORD_RATE_LIMIT',
        value: 'on',
        meaning: 'How often anybody may call: on, off, or a factor for the usual rates, such as 2 or 0.5.',
      },
    ],
  },
  {
    title: 'Where it keeps things',
    settings: [
      {
        name: 'ACCORD_DATA_DIR',
        value: './data',
        meaning: 'Folder of the database, the secret and the published contract.',
      },
      {
        name: 'ACCORD_DATABASE_URL',
        value: '',
        otherwise: 'accord.db in the data folder',
        meaning: 'The database. sqlite::memory: keeps nothing.',
      },
      {
        name: 'ACCORD_UPLOAD_LIMIT_MB',
        value: '1024',
        meaning: 'What uploads that belong to no record may take, of all users together, in MiB.',
      },
      {
        name: 'ACCORD_UPLOAD_USER_LIMIT_MB',
        value: '100',
        meaning: 'The same for the uploads of one user.',
      },
      {
        name: 'ACCORD_SECRET',
        value: '',
        otherwise: 'generated into the data folder',
        meaning: 'Key material, at least 32 characters. Losing it makes encrypted values unreadable.',
      },
    ],
  },
  {
    title: 'The first administrator (used once, by the installation)',
    settings: [
      { name: 'ACCORD_ADMIN_EMAIL', value: 'admin@example.com', meaning: 'E-mail address of the first administrator.' },
      {
        name: 'ACCORD_ADMIN_PASSWORD',
        value: '',
        otherwise: 'a random one, printed once',
        meaning: 'Password of the first administrator, 8 to 128 characters, none of the commonest.',
      },
    ],
  },
  {
    title: 'Language and money',
    settings: [
      { name: 'ACCORD_TIMEZONE', value: 'UTC', meaning: 'IANA time zone in which dates without a zone are read.' },
      { name: 'ACCORD_LOCALE', value: 'en-US', meaning: 'BCP 47 locale of formatted amounts and dates.' },
      { name: 'ACCORD_CURRENCY', value: 'USD', meaning: 'ISO 4217 code of every amount.' },
    ],
  },
  {
    title: 'Tokens',
    settings: [
      { name: 'ACCORD_TOKEN_TTL_DAYS', value: '365', meaning: 'Days until a login token expires. 0 for never.' },
      {
        name: 'ACCORD_TOKEN_IDLE_DAYS',
        value: '0',
        meaning: 'Days after which an unused token is refused. 0 for never.',
      },
    ],
  },
  {
    title: 'The mailbox',
    settings: [
      {
        name: 'ACCORD_SMTP_URL',
        value: '',
        otherwise: 'none: e-mails stay queued',
        meaning:
          'Server for outgoing mail, smtp://user:password@host:port or smtps://…; file:<folder> writes .eml files there instead.',
      },
      {
        name: 'MAIL_RECEIVER_DRIVER',
        value: 'sendgrid',
        meaning:
          'Where inbound mail comes from: sendgrid (posted to this server) or webklex-imap (a mailbox is polled).',
      },
      {
        name: 'ACCORD_INBOUND_SECRET',
        value: '',
        otherwise: 'generated; `accord install` prints the address with it',
        meaning: 'Secret that a service must send along with inbound mail.',
      },
      {
        name: 'ACCORD_INBOUND_OPEN',
        value: 'off',
        meaning: 'on accepts inbound mail without the secret, from anybody.',
      },
      {
        name: 'ACCORD_CAMPAIGN_RATE',
        value: '60',
        meaning: 'E-mails of campaigns a minute.',
      },
      {
        name: 'ACCORD_IMAP_HOST',
        value: '',
        otherwise: 'none',
        meaning: 'IMAP server of the mailbox; what the configuration starts with, as the five below.',
      },
      { name: 'ACCORD_IMAP_PORT', value: '993', meaning: 'Its port.' },
      { name: 'ACCORD_IMAP_ENCRYPTION', value: 'ssl', meaning: 'none, ssl or tls.' },
      {
        name: 'ACCORD_IMAP_VALIDATE_CERT',
        value: 'true',
        meaning: 'false accepts a certificate that cannot be verified.',
      },
      { name: 'ACCORD_IMAP_USERNAME', value: '', otherwise: 'none', meaning: 'Account of the mailbox.' },
      { name: 'ACCORD_IMAP_PASSWORD', value: '', otherwise: 'none', meaning: 'Its password.' },
    ],
  },
  {
    title: 'Mail',
    settings: [
      {
        name: 'ACCORD_MAIL_FROM',
        value: '',
        otherwise: 'no-reply@ and the host of ACCORD_APP_URL',
        meaning: 'Address that mails are sent from.',
      },
      {
        name: 'ACCORD_MAIL_FROM_NAME',
        value: '',
        otherwise: 'the value of ACCORD_APP_NAME',
        meaning: 'Name shown as their sender.',
      },
      {
        name: 'ACCORD_MAIL_DOMAIN',
        value: '',
        otherwise: 'the host of ACCORD_APP_URL',
        meaning: 'Domain of their message ids.',
      },
    ],
  },
  {
    title: 'Behaviour',
    settings: [
      {
        name: 'ACCORD_ENV',
        value: 'development',
        meaning:
          'production, development or test. In production a sample of the replies is checked against the contract, and what breaks it is logged and counted; otherwise all are checked, and one that breaks it is answered as 500.',
      },
      {
        name: 'ACCORD_STRICT',
        value: 'on',
        meaning: 'off ignores unknown query and body keys instead of refusing them.',
      },
      {
        name: 'ACCORD_LISTENERS',
        value: '',
        otherwise: 'none',
        meaning: 'Listener modules, comma-separated: files, folders or packages.',
      },
      { name: 'ACCORD_WEBHOOK_ALLOW_HTTP', value: 'off', meaning: 'on lets webhooks name http addresses.' },
      {
        name: 'ACCORD_WEBHOOK_ALLOW_CIDRS',
        value: '',
        otherwise: 'none',
        meaning: 'Private networks that webhooks may reach, comma-separated, such as 10.0.0.0/8.',
      },
      {
        name: 'ACCORD_WORKER',
        value: 'on',
        meaning: 'off leaves what happens by itself to `accord worker`, a process of its own.',
      },
      {
        name: 'ACCORD_EVENTS_RETENTION_DAYS',
        value: '400',
        meaning: 'Days that the event log is kept: history, change feed.',
      },
      { name: 'ACCORD_LOG_LEVEL', value: 'info', meaning: 'fatal, error, warn, info, debug, trace or silent.' },
    ],
  },
]

/** The text of a new .env: every setting, each commented out, so that it changes nothing until somebody edits it. */
export function envTemplate(): string {
  const head = '# Settings of Accord CRM. Remove the # before a line to set it; the environment wins over this file.\n'
  const groups = settings.map(({ title, settings }) => {
    const lines = settings.map(({ name, value, otherwise, meaning }) => {
      const fallback = otherwise === undefined ? '' : `\n# Unset: ${otherwise}.`
      return `# ${meaning}${fallback}\n#${name}=${value.includes(' ') ? `"${value}"` : value}\n`
    })
    return `\n# ── ${title} ──\n\n${lines.join('\n')}`
  })
  return head + groups.join('')
}
