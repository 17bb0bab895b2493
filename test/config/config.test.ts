// Settings: an empty environment gives the defaults, errors name the variable, and former names
// still work.
import { parse } from 'dotenv'
import { describe, expect, it } from 'vitest'
import { ConfigError, readConfig } from '../../src/config/config.ts'
import type { Setting } from '../../src/config/setting.ts'
import { settings } from '../../src/config/settings.ts'
import { envTemplate, settingsHelp } from '../../src/config/settings-text.ts'
import { signInWarning, statefulDomains } from '../../src/config/sign-in-hosts.ts'

const listed = Object.values<Setting>(settings)

describe('readConfig', () => {
  it('starts with an empty environment', () => {
    const { config, warnings } = readConfig({})
    expect(config).toMatchObject({
      env: 'development',
      host: '127.0.0.1',
      port: 8000,
      appUrl: null,
      secret: null,
      adminEmail: 'admin@example.com',
      strict: true,
    })
    expect(config.databaseUrl).toBe(`sqlite:${config.dataDir}/accord.db`)
    expect(warnings).toEqual([])
  })

  it.each([
    ['ACCORD_ENV', 'staging'],
    ['ACCORD_PORT', '65536'],
    ['ACCORD_PORT', '80.5'],
    ['ACCORD_APP_URL', 'crm.example.com'],
    ['ACCORD_APP_URL', 'ftp://crm.example.com'],
    ['ACCORD_DATABASE_URL', 'mysql://host/crm'],
    ['ACCORD_DATABASE_POOLER', 'session'],
    ['ACCORD_DATABASE_CONNECTIONS', '0'],
    ['ACCORD_SECRET', 'short'],
    ['ACCORD_ADMIN_EMAIL', 'admin'],
    ['ACCORD_ADMIN_PASSWORD', 'short'],
    ['ACCORD_TIMEZONE', 'Mars/Olympus'],
    ['ACCORD_LOCALE', '!'],
    ['ACCORD_CURRENCY', 'Dollar'],
    ['ACCORD_TOKEN_TTL_DAYS', '-1'],
    ['ACCORD_TOKEN_IDLE_DAYS', 'never'],
    ['ACCORD_STRICT', 'yes'],
    ['ACCORD_TRUSTED_PROXIES', '10.0.0.0/99'],
    ['ACCORD_CORS_ORIGINS', '*'],
    ['ACCORD_CORS_ORIGINS', 'app.example.com'],
    ['ACCORD_CORS_ORIGINS', 'https://app.example.com/'],
    ['ACCORD_CORS_ORIGINS', 'https://*.example.com'],
    ['ACCORD_CORS_ORIGINS', 'null'],
    ['ACCORD_RATE_LIMIT', 'yes'],
    ['ACCORD_RATE_LIMIT', '0'],
    ['ACCORD_RATE_LIMIT', '1e3'],
    ['ACCORD_MAIL_FROM', 'nobody'],
    ['ACCORD_MAIL_FROM', 'Sales <sales@example.com>'],
    ['ACCORD_MAIL_DOMAIN', 'mail@example.com'],
    ['ACCORD_LOG_LEVEL', 'loud'],
  ])('refuses %s=%s and names the variable', (name, value) => {
    expect(() => readConfig({ [name]: value })).toThrow(ConfigError)
    expect(() => readConfig({ [name]: value })).toThrow(name)
  })

  it('reads a former name with a warning, unless the new name is set', () => {
    const former = { ACCORD_COMMIT_GROUP_MS: '3' }
    const { config, warnings } = readConfig(former)
    expect(config).toMatchObject({ groupCommitMs: 3 })
    expect(warnings.join('\n')).toMatch(/^ACCORD_COMMIT_GROUP_MS is now called ACCORD_GROUP_COMMIT_MS\./)

    const both = readConfig({ ...former, ACCORD_GROUP_COMMIT_MS: '4' })
    expect(both.config).toMatchObject({ groupCommitMs: 4 })
    expect(both.warnings.join('\n')).toMatch(/^ACCORD_COMMIT_GROUP_MS is ignored/)

    expect(() => readConfig({ ACCORD_COMMIT_GROUP_MS: 'long' })).toThrow('ACCORD_GROUP_COMMIT_MS must be')
  })

  it('warns of a setting that is gone', () => {
    const { warnings } = readConfig({ ACCORD_RESPONSE_CACHE_MB: 'any', ACCORD_REPLY_MEMORY_MB: '8' })
    expect(warnings.join('\n')).toMatch(/^ACCORD_RESPONSE_CACHE_MB is ignored.*\nACCORD_REPLY_MEMORY_MB is ignored/)
  })

  it('refuses an unknown variable, suggests a setting and shows no value', () => {
    const environment = { ACCORD_STATEFUL_DOMAIN: 'a-value', ACCORD_COLOR: 'a-value', ACCORD_PORT: '80' }
    expect(() => readConfig(environment)).toThrow(ConfigError)
    expect(() => readConfig(environment)).toThrow(
      [
        'ACCORD_COLOR is not a setting.',
        'ACCORD_STATEFUL_DOMAIN is not a setting. Did you mean ACCORD_STATEFUL_DOMAINS?',
        'To list all settings, run: accord serve --help',
      ].join('\n'),
    )
    expect(() => readConfig({ ACCORD_RESPONSE_CACHE_MBS: '1' })).toThrow(/is not a setting\.\n/)
  })

  it('accepts variables of listener modules, of tests, of Kubernetes services, of others, and empty ones', () => {
    const environment = {
      ACCORD_EXT_REGION: 'eu',
      ACCORD_TEST_ENGINE: 'postgres',
      ACCORD_CRM_SERVICE_HOST: '10.0.0.7',
      ACCORD_CRM_SERVICE_PORT_HTTP: '80',
      ACCORD_CRM_PORT: 'tcp://10.0.0.7:80',
      ACCORD_CRM_PORT_80_TCP_ADDR: '10.0.0.7',
      accord_port: '1',
      ACCORD_COLOR: '',
    }
    expect(readConfig(environment)).toEqual(readConfig({}))
  })

  it('keeps spaces at the ends of a password, and of nothing else', () => {
    const { config } = readConfig({ ACCORD_ADMIN_PASSWORD: ' a password ', ACCORD_APP_NAME: ' Sales ' })
    expect(config).toMatchObject({ adminPassword: ' a password ', appName: 'Sales' })
  })

  it('treats an empty value as unset', () => {
    expect(readConfig({ ACCORD_PORT: '', ACCORD_TIMEZONE: ' ' }).config).toMatchObject({ port: 8000, timezone: 'UTC' })
  })

  it('sends mails from the host of the app URL unless told otherwise', () => {
    const mailOf = (environment: Record<string, string>) => {
      const { mailFrom, mailFromName, mailDomain } = readConfig(environment).config
      return [mailFrom, mailFromName, mailDomain]
    }
    expect(mailOf({})).toEqual(['no-reply@localhost', 'Accord CRM', 'localhost'])
    expect(mailOf({ ACCORD_APP_URL: 'https://crm.example.com:8443/x', ACCORD_APP_NAME: 'Sales' })).toEqual([
      'no-reply@crm.example.com',
      'Sales',
      'crm.example.com',
    ])
    expect(mailOf({ ACCORD_APP_URL: 'http://[::1]:8000' })[2]).toBe('localhost')
    const set = { ACCORD_MAIL_FROM: 'a@example.org', ACCORD_MAIL_FROM_NAME: 'A', ACCORD_MAIL_DOMAIN: 'Example.org' }
    expect(mailOf(set)).toEqual(['a@example.org', 'A', 'example.org'])
  })

  it('strips scheme and path of a stateful domain and says so', () => {
    const { config, warnings } = readConfig({
      ACCORD_STATEFUL_DOMAINS: 'https://CRM.example.com/app, ::1, *.example.org',
    })
    expect(config.statefulDomains).toEqual(['crm.example.com', '[::1]', '*.example.org'])
    expect(warnings).toHaveLength(1)
  })
})

describe('statefulDomains', () => {
  it('is this machine with and without the port, and the host of the app URL, unless set', () => {
    const { config } = readConfig({ ACCORD_APP_URL: 'https://crm.example.com' })
    expect(statefulDomains(config, 8123)).toEqual([
      'localhost',
      'localhost:8123',
      '127.0.0.1',
      '127.0.0.1:8123',
      '[::1]',
      '[::1]:8123',
      'crm.example.com',
    ])
    expect(statefulDomains({ ...config, statefulDomains: ['*'] }, 8123)).toEqual(['*'])
  })
})

describe('signInWarning', () => {
  const warningOf = (environment: Record<string, string>) => signInWarning(readConfig(environment).config)

  it('names host and setting when other machines may call but their users cannot sign in', () => {
    for (const host of ['0.0.0.0', '::', '192.168.1.5'])
      expect(warningOf({ ACCORD_HOST: host })).toMatch(
        new RegExp(
          `^ACCORD_HOST is ${host}, .* ACCORD_STATEFUL_DOMAINS=localhost,127.0.0.1,\\[::1\\],crm.example.com$`,
        ),
      )
    expect(warningOf({ ACCORD_HOST: '0.0.0.0', ACCORD_APP_URL: 'http://localhost:8000' })).not.toBeNull()
  })

  it('is absent on the loopback, and when a host is named', () => {
    expect(warningOf({})).toBeNull()
    expect(warningOf({ ACCORD_HOST: '::1' })).toBeNull()
    expect(warningOf({ ACCORD_HOST: '0.0.0.0', ACCORD_STATEFUL_DOMAINS: '*' })).toBeNull()
    expect(warningOf({ ACCORD_HOST: '0.0.0.0', ACCORD_APP_URL: 'https://crm.example.com' })).toBeNull()
  })
})

describe('the .env template', () => {
  it('names every setting once', () => {
    expect(new Set(listed.map(({ name }) => name)).size).toBe(listed.length)
  })

  it('sets nothing as it is, and with every line uncommented it sets the defaults', () => {
    expect(parse(envTemplate())).toEqual({})
    const uncommented = parse(envTemplate().replaceAll(/^#(?=(ACCORD|MAIL)_)/gm, ''))
    expect(Object.keys(uncommented)).toEqual(listed.map(({ name }) => name))
    expect(readConfig(uncommented)).toEqual(readConfig({}))
  })
})

describe('the help of accord serve', () => {
  it('names every setting with its default', () => {
    const help = settingsHelp()
    for (const { name } of listed) expect(help).toContain(`  ${name} (`)
    expect(help).toContain('ACCORD_GROUP_COMMIT_MS (10 ms)')
  })
})

describe('the settings of a bucket', () => {
  const read = (environment: Record<string, string>) => readConfig(environment).config
  const told = (environment: Record<string, string>): string => {
    try {
      readConfig(environment)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  it('name a bucket and a prefix, and a server with the bucket in its path', () => {
    expect(read({}).filesUrl).toBeNull()
    expect(read({ ACCORD_FILES_URL: 's3://files.example/team/crm/' })).toMatchObject({
      filesUrl: { bucket: 'files.example', prefix: 'team/crm' },
      s3PathStyle: false,
    })
    expect(read({ ACCORD_S3_ENDPOINT: 'https://s3.example.com/' })).toMatchObject({
      s3Endpoint: 'https://s3.example.com',
      s3PathStyle: true,
    })
  })

  it('are refused without repeating a secret', () => {
    for (const url of ['s3://key:hidden@files', 's3:files', 'https://hidden', 's3://files/../hidden', 's3://Hidden'])
      expect(told({ ACCORD_FILES_URL: url })).toMatch(/^ACCORD_FILES_URL must be s3:(?!.*hidden)/i)
    expect(told({ ACCORD_S3_ENDPOINT: 'https://key:hidden@s3' })).toMatch(/^ACCORD_S3_ENDPOINT must be (?!.*hidden)/)
    expect(told({ ACCORD_S3_SECRET_ACCESS_KEY: 'hidden' })).toBe(
      'ACCORD_S3_ACCESS_KEY_ID and ACCORD_S3_SECRET_ACCESS_KEY must be set together, or neither.',
    )
  })
})
