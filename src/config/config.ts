// Reads the configuration from the environment. No other file reads the environment.
// The table in settings.ts lists every setting. An invalid value stops the start with a message
// that names the variable.
import { readFileSync } from 'node:fs'
import { ConfigError } from './parsers.ts'
import type { Setting } from './setting.ts'
import { retiredSettings, type Settings, settings } from './settings.ts'
import { refuseUnknownVariables } from './unknown-variables.ts'

export { ConfigError } from './parsers.ts'

type Environment = Record<string, string | undefined>

type ImapKey = 'imapHost' | 'imapPort' | 'imapEncryption' | 'imapValidateCert' | 'imapUsername' | 'imapPassword'

export interface Config extends Omit<Settings, ImapKey> {
  /**
   * The mailbox that is polled for inbound mail. The configuration (`email.imap.account`) may
   * override it.
   */
  imap: {
    host: string | null
    port: number
    encryption: 'none' | 'ssl' | 'tls'
    validateCert: boolean
    username: string | null
    password: string | null
  }
  /** The memory for hashing a password with argon2id, in KiB. Only tests lower it. */
  passwordMemoryKiB: number
}

const table = Object.values<Setting>(settings)
const settingNames = table.map(({ name }) => name)
const formerNames = [...table.flatMap(({ formerName }) => formerName ?? []), ...retiredSettings]

/**
 * Returns the configuration. Throws ConfigError for an invalid value and for an unknown variable.
 * `warnings` are sentences about values that were corrected, and about former and retired names.
 */
export function readConfig(environment: Environment): { config: Config; warnings: string[] } {
  const warnings: string[] = []
  refuseUnknownVariables(environment, settingNames, formerNames)
  const values = readSettings(environment, (sentence) => warnings.push(sentence))
  for (const name of retiredSettings)
    if (environment[name]) warnings.push(`${name} is ignored: this version has no cache of replies.`)
  if (values.adminPassword === values.adminEmail)
    throw new ConfigError(settings.adminPassword.name, 'must not be the e-mail address.')
  if (values.databaseReplicaUrl !== null && values.databaseUrl.startsWith('sqlite:'))
    throw new ConfigError(settings.databaseReplicaUrl.name, 'needs a PostgreSQL database in ACCORD_DATABASE_URL.')
  if ((values.s3AccessKeyId === null) !== (values.s3SecretAccessKey === null))
    throw new ConfigError(
      settings.s3AccessKeyId.name,
      `and ${settings.s3SecretAccessKey.name} must be set together, or neither.`,
    )
  const { imapHost, imapPort, imapEncryption, imapValidateCert, imapUsername, imapPassword, ...others } = values
  const config: Config = {
    ...others,
    imap: {
      host: imapHost,
      port: imapPort,
      encryption: imapEncryption,
      validateCert: imapValidateCert,
      username: imapUsername,
      password: imapPassword,
    },
    passwordMemoryKiB: 19 * 1024,
  }
  return { config, warnings }
}

/**
 * Parses all settings in the order of the table, because a default may depend on an earlier
 * setting.
 */
function readSettings(environment: Environment, warn: (sentence: string) => void): Settings {
  const values: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries<Setting>(settings)) {
    const raw = rawValue(environment, setting, warn)
    const text = setting.keepsSpaces ? raw : raw.trim()
    const fallback = typeof setting.default === 'string' ? setting.default : setting.default(values as Settings)
    values[key] = setting.parse(text || fallback, setting.name, warn)
  }
  return values as Settings
}

/** Returns the text of a setting. An empty value counts as unset. */
function rawValue(environment: Environment, { name, formerName }: Setting, warn: (sentence: string) => void): string {
  const value = environment[name] ?? ''
  if (formerName === undefined || !environment[formerName]) return value
  if (value !== '') {
    warn(`${formerName} is ignored, because ${name}, its new name, is set.`)
    return value
  }
  warn(`${formerName} is now called ${name}. The old name still works, but version 0.3 will ignore it.`)
  return environment[formerName]
}

/**
 * Returns the variables of `.env` in the working directory and of this process. A variable of the
 * process takes precedence.
 */
export function environment(parse: (text: string) => Environment): Environment {
  let file: Environment = {}
  try {
    file = parse(readFileSync('.env', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return { ...file, ...process.env }
}

/**
 * Returns whether errors are printed with their stack. Reads the variable directly, because the
 * error may come from reading the settings.
 */
export const isDebugging = (): boolean => /^(debug|trace)$/.test(process.env.ACCORD_LOG_LEVEL ?? '')
