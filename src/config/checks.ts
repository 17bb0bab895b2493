// What a setting may be, where that takes more than a list or a range. Each check throws ConfigError with the name of its
// variable; config.ts says which setting is checked how.

export class ConfigError extends Error {
  constructor(variable: string, problem: string) {
    super(`${variable} ${problem}`)
    this.name = 'ConfigError'
  }
}

/** The value is not repeated: it may hold a password. */
export function smtpUrl(text: string): string | null {
  if (text === '') return null
  const isUrl = URL.canParse(text) && /^(smtps?|file):$/.test(new URL(text).protocol)
  if (!isUrl && !/^file:./.test(text))
    throw new ConfigError('ACCORD_SMTP_URL', 'must be smtp://[user:password@]host:port, smtps://… or file:<folder>.')
  return text
}

/** By how much the limits of DOMAIN 25.2 are multiplied; null: nobody is limited. */
export function rateFactor(text: string): number | null {
  if (text === 'on') return 1
  if (text === 'off') return null
  const factor = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || factor < 0.01 || factor > 1000)
    throw new ConfigError('ACCORD_RATE_LIMIT', `must be on, off, or a factor from 0.01 to 1000, not "${text}".`)
  return factor
}

/** Origins exactly as a browser sends them: a page of any other one reads no answer. */
export function origins(list: readonly string[]): string[] {
  for (const each of list) {
    if (!/^https?:\/\/[^*]+$/.test(each) || !URL.canParse(each) || new URL(each).origin !== each)
      throw new ConfigError(
        'ACCORD_CORS_ORIGINS',
        `must list origins such as https://app.example.com, without a path; "${each}" is none.`,
      )
  }
  return [...new Set(list)]
}
