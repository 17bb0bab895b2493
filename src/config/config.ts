// The only reader of the environment (DOMAIN 25.3). Every setting is named here with its default and one sentence; a bad
// value stops the start with a message that names the variable.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { IANAZone } from 'luxon'
import { ConfigError, origins, rateFactor, smtpUrl } from './checks.ts'

export { ConfigError } from './checks.ts'

type Environment = Record<string, string | undefined>

export interface Config {
  env: 'production' | 'development' | 'test'
  host: string
  port: number
  /** External base URL without a trailing slash; null: the host of each request is used in links. */
  appUrl: string | null
  appName: string
  statefulDomains: string[]
  dataDir: string
  databaseUrl: string
  /** Key material; null: the one in the data folder. */
  secret: string | null
  adminEmail: string
  adminPassword: string | null
  timezone: string
  locale: string
  currency: string
  tokenTtlDays: number
  tokenIdleDays: number
  strict: boolean
  trustedProxies: string[]
  /** Origins whose pages may call with the credentials of whoever uses them. */
  corsOrigins: string[]
  /** By how much the usual rates are multiplied; null: nobody is limited. */
  rateFactor: number | null
  /** How much memory replies may take that are kept until something changes; 0 keeps none. */
  replyMemoryMb: number
  /** How long at most writes that come together wait for each other to share one commit; 0: each has its own. */
  commitGroupMs: number
  /** Sender of mails, the name shown with it, and the domain of their message ids. */
  mailFrom: string
  mailFromName: string
  mailDomain: string
  listeners: string[]
  /** `smtp://`, `smtps://`, or `file:` for a folder; null: mails stay queued. */
  smtpUrl: string | null
  /** Where inbound mail comes from: a service that posts it, or a mailbox that is polled. */
  mailReceiver: 'sendgrid' | 'webklex-imap'
  /** Null: the one derived from the key material (kernel/auth/encryption.ts). */
  inboundSecret: string | null
  /** Whether inbound mail is also accepted without the secret. */
  inboundOpen: boolean
  /** The quota of uploads that belong to no record, in MiB: of all users, and of each. */
  uploadLimitMb: number
  uploadUserLimitMb: number
  /** Mails of campaigns a minute. */
  campaignRate: number
  eventsRetentionDays: number
  /** Whether this server does the work of the background itself. */
  worker: boolean
  /** Whether webhooks may go to addresses without encryption, and to which private networks. */
  webhookAllowHttp: boolean
  webhookAllowCidrs: string[]
  /** The mailbox that is polled for inbound mail; the configuration may say otherwise. */
  imap: {
    host: string | null
    port: number
    encryption: 'none' | 'ssl' | 'tls'
    validateCert: boolean
    username: string | null
    password: string | null
  }
  logLevel: string
  /** Memory of argon2id in KiB; lowered in tests only. */
  passwordMemoryKiB: number
}

/** Reads `environment`, throws ConfigError. Warnings are about settings that were read differently than written. */
export function readConfig(environment: Environment): { config: Config; warnings: string[] } {
  const warnings: string[] = []
  const text = (name: string, fallback: string): string => environment[name]?.trim() || fallback
  const list = (name: string): string[] =>
    text(name, '')
      .split(',')
      .map((each) => each.trim())
      .filter(Boolean)
  const integer = (name: string, fallback: number, low: number, high: number): number => {
    const raw = text(name, String(fallback))
    const value = Number(raw)
    if (!/^\d+$/.test(raw) || value < low || value > high)
      throw new ConfigError(name, `must be a whole number from ${low} to ${high}, not "${raw}".`)
    return value
  }
  const choice = <T extends string>(name: string, fallback: T, allowed: readonly T[]): T => {
    const value = text(name, fallback)
    const found = allowed.find((each) => each === value)
    if (!found) throw new ConfigError(name, `must be one of ${allowed.join(', ')}, not "${value}".`)
    return found
  }

  const env = choice('ACCORD_ENV', 'development', ['production', 'development', 'test'])
  const host = text('ACCORD_HOST', '127.0.0.1')
  const port = integer('ACCORD_PORT', 8000, 0, 65535)
  const dataDir = resolve(text('ACCORD_DATA_DIR', './data'))
  const databaseUrl = text('ACCORD_DATABASE_URL', `sqlite:${join(dataDir, 'accord.db')}`)
  if (!databaseUrl.startsWith('sqlite:'))
    throw new ConfigError('ACCORD_DATABASE_URL', `must start with sqlite:, not "${databaseUrl.split(':')[0]}:".`)

  const appUrl = text('ACCORD_APP_URL', '').replace(/\/+$/, '') || null
  if (appUrl !== null && !(URL.canParse(appUrl) && /^https?:$/.test(new URL(appUrl).protocol)))
    throw new ConfigError('ACCORD_APP_URL', `must be an http or https URL, not "${appUrl}".`)

  const timezone = text('ACCORD_TIMEZONE', 'UTC')
  if (!IANAZone.isValidZone(timezone))
    throw new ConfigError('ACCORD_TIMEZONE', `must be an IANA time zone such as Europe/Berlin, not "${timezone}".`)
  const locale = text('ACCORD_LOCALE', 'en-US')
  const currency = text('ACCORD_CURRENCY', 'USD')
  try {
    new Intl.NumberFormat(locale, { style: 'currency', currency })
  } catch {
    throw new ConfigError(
      'ACCORD_LOCALE / ACCORD_CURRENCY',
      `must be a BCP 47 locale and an ISO 4217 code, not "${locale}" and "${currency}".`,
    )
  }

  const trustedProxies = list('ACCORD_TRUSTED_PROXIES')
  for (const range of trustedProxies) {
    if (!ipaddr.isValid(range) && !ipaddr.isValidCIDR(range))
      throw new ConfigError('ACCORD_TRUSTED_PROXIES', `must list addresses or CIDR ranges; "${range}" is neither.`)
  }

  for (const range of list('ACCORD_WEBHOOK_ALLOW_CIDRS')) {
    if (!ipaddr.isValidCIDR(range))
      throw new ConfigError(
        'ACCORD_WEBHOOK_ALLOW_CIDRS',
        `must list CIDR ranges such as 10.0.0.0/8; "${range}" is none.`,
      )
  }

  const appHost = hostOf(appUrl)
  const appName = text('ACCORD_APP_NAME', 'Accord CRM')
  const config: Config = {
    env,
    host,
    port,
    appUrl,
    appName,
    statefulDomains: list('ACCORD_STATEFUL_DOMAINS').map((entry) => {
      const plain = entry.replace(/^[a-z]+:\/\//i, '').replace(/\/.*$/, '')
      if (plain !== entry)
        warnings.push(`ACCORD_STATEFUL_DOMAINS: "${entry}" is read as "${plain}"; list hosts without scheme and path.`)
      return plain === '::1' ? '[::1]' : plain.toLowerCase()
    }),
    dataDir,
    databaseUrl,
    secret: text('ACCORD_SECRET', '') || null,
    adminEmail: text('ACCORD_ADMIN_EMAIL', 'admin@example.com'),
    adminPassword: environment.ACCORD_ADMIN_PASSWORD || null,
    timezone,
    locale,
    currency,
    tokenTtlDays: integer('ACCORD_TOKEN_TTL_DAYS', 365, 0, 36500),
    tokenIdleDays: integer('ACCORD_TOKEN_IDLE_DAYS', 0, 0, 36500),
    strict: choice('ACCORD_STRICT', 'on', ['on', 'off']) === 'on',
    trustedProxies,
    corsOrigins: origins(list('ACCORD_CORS_ORIGINS')),
    rateFactor: rateFactor(text('ACCORD_RATE_LIMIT', 'on')),
    replyMemoryMb: integer('ACCORD_REPLY_MEMORY_MB', 64, 0, 4096),
    commitGroupMs: integer('ACCORD_COMMIT_GROUP_MS', 10, 0, 1_000),
    mailFrom: text('ACCORD_MAIL_FROM', `no-reply@${appHost}`),
    mailFromName: text('ACCORD_MAIL_FROM_NAME', appName),
    mailDomain: text('ACCORD_MAIL_DOMAIN', appHost).toLowerCase(),
    listeners: list('ACCORD_LISTENERS'),
    smtpUrl: smtpUrl(text('ACCORD_SMTP_URL', '')),
    mailReceiver: choice('MAIL_RECEIVER_DRIVER', 'sendgrid', ['sendgrid', 'webklex-imap']),
    inboundSecret: environment.ACCORD_INBOUND_SECRET || null,
    inboundOpen: choice('ACCORD_INBOUND_OPEN', 'off', ['on', 'off']) === 'on',
    uploadLimitMb: integer('ACCORD_UPLOAD_LIMIT_MB', 1024, 1, 1_000_000),
    uploadUserLimitMb: integer('ACCORD_UPLOAD_USER_LIMIT_MB', 100, 1, 1_000_000),
    campaignRate: integer('ACCORD_CAMPAIGN_RATE', 60, 1, 1_000_000),
    eventsRetentionDays: integer('ACCORD_EVENTS_RETENTION_DAYS', 400, 1, 36500),
    worker: choice('ACCORD_WORKER', 'on', ['on', 'off']) === 'on',
    webhookAllowCidrs: list('ACCORD_WEBHOOK_ALLOW_CIDRS'),
    webhookAllowHttp: choice('ACCORD_WEBHOOK_ALLOW_HTTP', 'off', ['on', 'off']) === 'on',
    imap: {
      host: text('ACCORD_IMAP_HOST', '') || null,
      port: integer('ACCORD_IMAP_PORT', 993, 1, 65535),
      encryption: choice('ACCORD_IMAP_ENCRYPTION', 'ssl', ['none', 'ssl', 'tls']),
      validateCert: choice('ACCORD_IMAP_VALIDATE_CERT', 'true', ['true', 'false']) === 'true',
      username: text('ACCORD_IMAP_USERNAME', '') || null,
      password: environment.ACCORD_IMAP_PASSWORD || null,
    },
    logLevel: choice('ACCORD_LOG_LEVEL', 'info', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    passwordMemoryKiB: 19 * 1024,
  }
  if (config.adminPassword !== null && (config.adminPassword.length < 8 || config.adminPassword.length > 128)) {
    throw new ConfigError('ACCORD_ADMIN_PASSWORD', 'must have 8 to 128 characters.')
  }
  if (config.adminPassword === config.adminEmail)
    throw new ConfigError('ACCORD_ADMIN_PASSWORD', 'must not be the e-mail address.')
  if (!/^[^\s@]+@[^\s@]+$/.test(config.adminEmail))
    throw new ConfigError('ACCORD_ADMIN_EMAIL', `must be an e-mail address, not "${config.adminEmail}".`)
  if (!/^[^\s@<>"]+@[^\s@<>"]+$/.test(config.mailFrom))
    throw new ConfigError('ACCORD_MAIL_FROM', `must be an e-mail address, not "${config.mailFrom}".`)
  if (/[\r\n]/.test(config.mailFromName)) throw new ConfigError('ACCORD_MAIL_FROM_NAME', 'must be one line.')
  if (!/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(config.mailDomain))
    throw new ConfigError('ACCORD_MAIL_DOMAIN', `must be a domain such as example.com, not "${config.mailDomain}".`)
  if (config.secret !== null && config.secret.length < 32)
    throw new ConfigError('ACCORD_SECRET', 'must have at least 32 characters.')
  return { config, warnings }
}

/** What mails are sent from when nothing else is said: an address of IPv6 is no domain of mail. */
function hostOf(appUrl: string | null): string {
  const host = appUrl === null ? 'localhost' : new URL(appUrl).hostname
  return host.startsWith('[') ? 'localhost' : host
}

/** The environment of this process over the `.env` file of the working directory. */
export function environment(parse: (text: string) => Environment): Environment {
  let file: Environment = {}
  try {
    file = parse(readFileSync('.env', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return { ...file, ...process.env }
}

/** Whether whoever runs this wants stack traces; asked when the configuration itself may be what failed. */
export const isDebugging = (): boolean => /^(debug|trace)$/.test(process.env.ACCORD_LOG_LEVEL ?? '')

/** The stateful domains in force for a server that listens on `port` (DOMAIN 6.2). */
export function statefulDomains(config: Config, port: number): string[] {
  if (config.statefulDomains.length > 0) return config.statefulDomains
  const local = ['localhost', '127.0.0.1', '[::1]'].flatMap((host) => [host, `${host}:${port}`])
  return config.appUrl ? [...local, new URL(config.appUrl).host] : local
}
