// The table of all settings. config.ts uses it to read the environment.
// settings-text.ts uses it to print the .env template, the table in config/README.md and `accord
// serve --help`.
import { join, resolve } from 'node:path'
import { fileStorage } from './file-storage-settings.ts'
import * as parsers from './parsers.ts'
import { program } from './program-settings.ts'
import type { SettingGroup } from './setting.ts'

/**
 * Variables that earlier versions read. Such a variable has no effect; when it is set, the program
 * warns.
 */
export const retiredSettings = ['ACCORD_RESPONSE_CACHE_MB', 'ACCORD_REPLY_MEMORY_MB'] as const

const network = {
  host: {
    name: 'ACCORD_HOST',
    default: '127.0.0.1',
    meaning: 'Address to listen on. 0.0.0.0 listens on every address of the machine.',
    parse: parsers.parseText,
  },
  port: {
    name: 'ACCORD_PORT',
    default: '8000',
    meaning: 'Port to listen on. 0 takes a free one.',
    parse: parsers.integerBetween(0, 65535),
  },
  appUrl: {
    name: 'ACCORD_APP_URL',
    default: '',
    defaultInWords: 'the host of each request',
    meaning: 'External base URL. Links in e-mails start with it, so set it behind a proxy.',
    parse: parsers.parseAppUrl,
  },
  appName: {
    name: 'ACCORD_APP_NAME',
    default: 'Accord CRM',
    meaning: 'Name shown on the login page, on the documentation page and as the sender of e-mails.',
    parse: parsers.parseText,
  },
  statefulDomains: {
    name: 'ACCORD_STATEFUL_DOMAINS',
    default: '',
    defaultInWords: 'localhost, 127.0.0.1, [::1], the host of ACCORD_APP_URL',
    meaning:
      'Hosts that users may sign in from with a cookie, comma-separated, without scheme; * matches any characters. A value replaces the default.',
    parse: parsers.parseStatefulDomains,
  },
  trustedProxies: {
    name: 'ACCORD_TRUSTED_PROXIES',
    default: '',
    defaultInWords: 'none',
    meaning:
      'Addresses or CIDR ranges of proxies whose X-Forwarded-* headers are trusted, comma-separated. A malformed header from them gets 400.',
    parse: parsers.parseIpRanges,
  },
  corsOrigins: {
    name: 'ACCORD_CORS_ORIGINS',
    default: '',
    defaultInWords: 'none',
    meaning:
      'Origins of other web pages that may call with cookies or tokens, comma-separated, such as https://app.example.com.',
    parse: parsers.parseOrigins,
  },
} satisfies SettingGroup

const storage = {
  dataDir: {
    name: 'ACCORD_DATA_DIR',
    default: './data',
    meaning: 'Folder of the database, the files, the secret and the published contract.',
    parse: (text) => resolve(text),
  },
  databaseUrl: {
    name: 'ACCORD_DATABASE_URL',
    default: ({ dataDir }) => `sqlite:${join(dataDir, 'accord.db')}`,
    defaultInWords: 'accord.db in the data folder',
    meaning:
      'The database, such as sqlite:/srv/accord.db or postgres://user:password@host/database (PostgreSQL 15 or newer; host1,host2 for a primary and its standbys). sqlite::memory: stores nothing on disk.',
    parse: parsers.parseDatabaseUrl,
  },
  databaseReplicaUrl: {
    name: 'ACCORD_DATABASE_REPLICA_URL',
    default: '',
    defaultInWords: 'none',
    meaning:
      'PostgreSQL URL of a hot standby that answers exports and reports. It is used only while it has all changes made before the request.',
    parse: parsers.parseReplicaUrl,
  },
  databasePooler: {
    name: 'ACCORD_DATABASE_POOLER',
    default: 'none',
    meaning:
      'transaction if the PostgreSQL URL leads to a pooler in transaction mode, such as PgBouncer. The database user then needs timezone UTC.',
    parse: parsers.parseOneOf('none', 'transaction'),
  },
  databaseConnections: {
    name: 'ACCORD_DATABASE_CONNECTIONS',
    default: '8',
    meaning:
      'Maximum number of PostgreSQL connections that each process opens for reads, and the same number again for writes.',
    parse: parsers.integerBetween(1, 1_000),
  },
  secret: {
    name: 'ACCORD_SECRET',
    default: '',
    defaultInWords: 'generated into the data folder',
    meaning: 'Key material for encrypted values, at least 32 characters. Without it they cannot be decrypted.',
    parse: parsers.parseSecret,
  },
  eventsRetentionDays: {
    name: 'ACCORD_EVENTS_RETENTION_DAYS',
    default: '400',
    unit: 'days',
    meaning:
      'How long the event log is kept; record histories and the change feed reach back as far. Deleted records can be restored for 30 days regardless.',
    parse: parsers.integerBetween(1, 36500),
  },
} satisfies SettingGroup

const administrator = {
  adminEmail: {
    name: 'ACCORD_ADMIN_EMAIL',
    default: 'admin@example.com',
    meaning: 'E-mail address of the first administrator. Only the installation reads it.',
    parse: parsers.parseEmailAddress,
  },
  adminPassword: {
    name: 'ACCORD_ADMIN_PASSWORD',
    default: '',
    defaultInWords: 'a random one, printed once',
    meaning:
      'Password of the first administrator, 8 to 128 characters, not a common one. Only the installation reads it.',
    parse: parsers.parseAdminPassword,
    keepsSpaces: true,
  },
} satisfies SettingGroup

const formats = {
  timezone: {
    name: 'ACCORD_TIMEZONE',
    default: 'UTC',
    meaning: 'IANA time zone of dates that are written without one.',
    parse: parsers.parseTimezone,
  },
  locale: {
    name: 'ACCORD_LOCALE',
    default: 'en-US',
    meaning: 'BCP 47 locale of texts for customers, amounts and dates.',
    parse: parsers.parseLocale,
  },
  country: {
    name: 'ACCORD_COUNTRY',
    default: '',
    defaultInWords: 'none',
    meaning: 'ISO 3166 code of the country whose phone numbers are written without a country code, such as DE.',
    parse: parsers.parseCountry,
  },
  currency: {
    name: 'ACCORD_CURRENCY',
    default: 'USD',
    meaning: 'ISO 4217 code of every amount.',
    parse: parsers.parseCurrency,
  },
  taxAfterDiscount: {
    name: 'ACCORD_TAX_AFTER_DISCOUNT',
    default: 'on',
    meaning: 'Whether the discount_percent of a quote lowers the tax of its items: on or off.',
    parse: parsers.onOff,
  },
} satisfies SettingGroup

const limits = {
  rateFactor: {
    name: 'ACCORD_RATE_LIMIT',
    default: 'on',
    meaning: 'Rate limits: on, off, or a factor for the usual limits, such as 2 or 0.5.',
    parse: parsers.parseRateFactor,
  },
  tokenTtlDays: {
    name: 'ACCORD_TOKEN_TTL_DAYS',
    default: '365',
    unit: 'days',
    meaning: 'Time until a login token expires. 0 for never.',
    parse: parsers.integerBetween(0, 36500),
  },
  tokenIdleDays: {
    name: 'ACCORD_TOKEN_IDLE_DAYS',
    default: '0',
    unit: 'days',
    meaning: 'Time after which an unused token is refused. 0 for never.',
    parse: parsers.integerBetween(0, 36500),
  },
  uploadLimitMb: {
    name: 'ACCORD_UPLOAD_LIMIT_MB',
    default: '1024',
    unit: 'MiB',
    meaning: 'Quota for uploads that belong to no record, for all users together.',
    parse: parsers.integerBetween(1, 1_000_000),
  },
  uploadUserLimitMb: {
    name: 'ACCORD_UPLOAD_USER_LIMIT_MB',
    default: '100',
    unit: 'MiB',
    meaning: 'The same quota for each user.',
    parse: parsers.integerBetween(1, 1_000_000),
  },
  groupCommitMs: {
    name: 'ACCORD_GROUP_COMMIT_MS',
    formerName: 'ACCORD_COMMIT_GROUP_MS',
    default: '10',
    unit: 'ms',
    meaning: 'How long concurrent writes may wait for each other to share one commit. 0 commits each on its own.',
    parse: parsers.integerBetween(0, 1_000),
  },
} satisfies SettingGroup

const outgoingMail = {
  smtpUrl: {
    name: 'ACCORD_SMTP_URL',
    default: '',
    defaultInWords: 'none: e-mails stay queued',
    meaning:
      'Server for outgoing e-mails, smtp://user:password@host:port or smtps://…; file:<folder> writes .eml files there instead.',
    parse: parsers.parseSmtpUrl,
  },
  mailFrom: {
    name: 'ACCORD_MAIL_FROM',
    default: ({ appUrl }) => `no-reply@${hostOf(appUrl)}`,
    defaultInWords: 'no-reply@ and the host of ACCORD_APP_URL',
    meaning: 'Address that e-mails are sent from.',
    parse: parsers.parseSenderAddress,
  },
  mailFromName: {
    name: 'ACCORD_MAIL_FROM_NAME',
    default: ({ appName }) => appName,
    defaultInWords: 'the value of ACCORD_APP_NAME',
    meaning: 'Name shown beside that address.',
    parse: parsers.parseSenderName,
  },
  mailDomain: {
    name: 'ACCORD_MAIL_DOMAIN',
    default: ({ appUrl }) => hostOf(appUrl),
    defaultInWords: 'the host of ACCORD_APP_URL',
    meaning: 'Domain of the Message-ID of e-mails.',
    parse: parsers.parseMailDomain,
  },
  campaignRate: {
    name: 'ACCORD_CAMPAIGN_RATE',
    default: '60',
    unit: 'a minute',
    meaning: 'How many e-mails of campaigns are sent.',
    parse: parsers.integerBetween(1, 1_000_000),
  },
} satisfies SettingGroup

const incomingMail = {
  mailReceiver: {
    name: 'MAIL_RECEIVER_DRIVER',
    default: 'sendgrid',
    meaning: 'Source of incoming e-mails: sendgrid (a service posts them) or webklex-imap (a mailbox is polled).',
    parse: parsers.parseOneOf('sendgrid', 'webklex-imap'),
  },
  inboundSecret: {
    name: 'ACCORD_INBOUND_SECRET',
    default: '',
    defaultInWords: 'generated; `accord install` prints the address with it',
    meaning: 'Secret in the address that a service posts incoming e-mails to.',
    parse: parsers.parseOptionalText,
    keepsSpaces: true,
  },
  inboundOpen: {
    name: 'ACCORD_INBOUND_OPEN',
    default: 'off',
    meaning: 'on accepts incoming e-mails without the secret, from any sender.',
    parse: parsers.onOff,
  },
  imapHost: {
    name: 'ACCORD_IMAP_HOST',
    default: '',
    defaultInWords: 'none',
    meaning:
      'IMAP server of the mailbox. Values in the configuration (email.imap.account) override the ACCORD_IMAP_* settings.',
    parse: parsers.parseOptionalText,
  },
  imapPort: {
    name: 'ACCORD_IMAP_PORT',
    default: '993',
    meaning: 'Port of the IMAP server.',
    parse: parsers.integerBetween(1, 65535),
  },
  imapEncryption: {
    name: 'ACCORD_IMAP_ENCRYPTION',
    default: 'ssl',
    meaning: 'none, ssl or tls (STARTTLS).',
    parse: parsers.parseOneOf('none', 'ssl', 'tls'),
  },
  imapValidateCert: {
    name: 'ACCORD_IMAP_VALIDATE_CERT',
    default: 'true',
    meaning: 'false accepts a certificate that cannot be verified.',
    parse: parsers.trueFalse,
  },
  imapUsername: {
    name: 'ACCORD_IMAP_USERNAME',
    default: '',
    defaultInWords: 'none',
    meaning: 'User name of the mailbox.',
    parse: parsers.parseOptionalText,
  },
  imapPassword: {
    name: 'ACCORD_IMAP_PASSWORD',
    default: '',
    defaultInWords: 'none',
    meaning: 'Password of the mailbox.',
    parse: parsers.parseOptionalText,
    keepsSpaces: true,
  },
} satisfies SettingGroup

/** The groups of settings by title. Printed in this order. */
export const settingGroups: Readonly<Record<string, SettingGroup>> = {
  Network: network,
  Storage: storage,
  'File storage': fileStorage,
  'First administrator': administrator,
  'Locale and currency': formats,
  Limits: limits,
  'Outgoing e-mail': outgoingMail,
  'Incoming e-mail': incomingMail,
  Program: program,
}

/**
 * All settings by their key in Config. A setting comes after the settings that its default depends
 * on.
 */
export const settings = {
  ...network,
  ...storage,
  ...fileStorage,
  ...administrator,
  ...formats,
  ...limits,
  ...outgoingMail,
  ...incomingMail,
  ...program,
}

export type Settings = { [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['parse']> }

/**
 * Returns the host of the app URL, for the default domain of e-mails. Returns `localhost` without
 * an app URL, and for an IPv6 host, because `x@[::1]` is not a valid address.
 */
function hostOf(appUrl: string | null): string {
  const host = appUrl === null ? 'localhost' : new URL(appUrl).hostname
  return host.startsWith('[') ? 'localhost' : host
}
