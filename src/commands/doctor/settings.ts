// What the doctor thinks of settings that are valid one by one and mean something else together. All are hints: the server runs.
import { isIP } from 'node:net'
import { type Config, statefulDomains } from '../../config/config.ts'
import { isStatefulHost } from '../../kernel/auth/stateful-domains.ts'
import { type CheckResult, Hint } from './check-result.ts'

export function checkSettings(config: Config): CheckResult {
  return [
    ...addressHints(config),
    ...signInHints(config),
    ...corsHints(config),
    ...passwordHints(config),
    ...inboundMailHints(config),
  ].map((sentence) => new Hint(sentence))
}

const isLoopback = (host: string): boolean =>
  /^(localhost|.*\.localhost|\[?::1\]?)$/.test(host) || (isIP(host) === 4 && host.startsWith('127.'))

function addressHints({ env, host, appUrl }: Config): string[] {
  const found: string[] = []
  if (env !== 'production' && !isLoopback(host))
    found.push(`ACCORD_ENV is ${env}, and ACCORD_HOST ${host} lets other machines in. Set ACCORD_ENV=production.`)
  if (env === 'production' && appUrl === null)
    found.push(
      'ACCORD_APP_URL is not set: links in mails name the host of each request, or localhost. Set it to the address people use.',
    )
  if (env === 'production' && appUrl !== null) {
    const { protocol, hostname } = new URL(appUrl)
    if (protocol === 'http:' && !isLoopback(hostname))
      found.push(
        `ACCORD_APP_URL is ${appUrl}: passwords and tokens cross the net in the open. Put a proxy with TLS in front, and write https.`,
      )
  }
  return found
}

/** The host that people use must be one they may sign in from. */
function signInHints(config: Config): string[] {
  if (config.appUrl === null) return []
  const { host } = new URL(config.appUrl)
  const domains = statefulDomains(config, config.port)
  if (maySignIn(config.appUrl, domains)) return []
  return [
    `ACCORD_STATEFUL_DOMAINS (${domains.join(', ')}) lacks ${host}, the host of ACCORD_APP_URL: nobody can sign in there. Add it.`,
  ]
}

function corsHints(config: Config): string[] {
  const domains = statefulDomains(config, config.port)
  return config.corsOrigins.flatMap((origin) => {
    const { host, hostname, protocol } = new URL(origin)
    const found: string[] = []
    if (!maySignIn(origin, domains))
      found.push(
        `ACCORD_CORS_ORIGINS has ${origin}, and ACCORD_STATEFUL_DOMAINS does not have ${host}: its pages may call, but nobody can sign in from them. Add the host to ACCORD_STATEFUL_DOMAINS.`,
      )
    if (config.env === 'production' && protocol === 'http:' && !isLoopback(hostname))
      found.push(`ACCORD_CORS_ORIGINS has ${origin}: who sits in between can act as that page. Write https.`)
    return found
  })
}

function passwordHints({ env, adminPassword }: Config): string[] {
  return env === 'production' && adminPassword !== null
    ? ['ACCORD_ADMIN_PASSWORD is still set. It is read by the installation alone: take it out of the environment.']
    : []
}

function inboundMailHints({ mailReceiver, inboundOpen }: Config): string[] {
  return mailReceiver === 'sendgrid' && inboundOpen
    ? [
        'ACCORD_INBOUND_OPEN is on: anybody can post e-mails. Give the mail service the address that `accord install` prints, then take the setting out.',
      ]
    : []
}

const maySignIn = (origin: string, domains: readonly string[]): boolean =>
  isStatefulHost({ origin, referer: undefined, calledAt: '' }, domains)
