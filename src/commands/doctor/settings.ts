// The hints of `accord doctor` about settings. Each such setting is valid, but risky in combination
// with another setting. The server starts regardless.
import type { Config } from '../../config/config.ts'
import { isLoopbackName, signInWarning, statefulDomains } from '../../config/sign-in-hosts.ts'
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

function addressHints({ env, host, appUrl, trustedProxies }: Config): string[] {
  const found: string[] = []
  if (env !== 'production' && !isLoopbackName(host))
    found.push(
      `ACCORD_ENV is ${env}, but ACCORD_HOST ${host} accepts calls from other machines. Set ACCORD_ENV=production.`,
    )
  if (env === 'production' && appUrl === null)
    found.push(
      'ACCORD_APP_URL is not set, so links in e-mails use the host of each request, or localhost. Set it to the public address.',
    )
  if (env === 'production' && appUrl !== null) {
    const { protocol, hostname } = new URL(appUrl)
    if (protocol === 'https:' && trustedProxies.length === 0)
      found.push(
        `ACCORD_APP_URL is ${appUrl}, so a proxy with TLS is in front, but ACCORD_TRUSTED_PROXIES is not set: all callers share the address of the proxy and its limits of sign-ins. Set it to the address of the proxy.`,
      )
    if (protocol === 'http:' && !isLoopbackName(hostname))
      found.push(
        `ACCORD_APP_URL is ${appUrl}: passwords and tokens travel unencrypted. Put a proxy with TLS in front, and use https.`,
      )
  }
  return found
}

/** Returns a hint when users cannot sign in at the public address, or only on this machine. */
function signInHints(config: Config): string[] {
  const warning = signInWarning(config)
  if (warning !== null) return [warning]
  if (config.appUrl === null) return []
  const { host } = new URL(config.appUrl)
  const domains = statefulDomains(config, config.port)
  if (maySignIn(config.appUrl, domains)) return []
  return [
    `ACCORD_STATEFUL_DOMAINS (${domains.join(', ')}) lacks ${host}, the host of ACCORD_APP_URL, so no user can sign in there. Add it.`,
  ]
}

function corsHints(config: Config): string[] {
  const domains = statefulDomains(config, config.port)
  return config.corsOrigins.flatMap((origin) => {
    const { host, hostname, protocol } = new URL(origin)
    const found: string[] = []
    if (!maySignIn(origin, domains))
      found.push(
        `ACCORD_CORS_ORIGINS has ${origin}, but ACCORD_STATEFUL_DOMAINS lacks ${host}: its pages may call the API, but users cannot sign in from them. Add the host to ACCORD_STATEFUL_DOMAINS.`,
      )
    if (config.env === 'production' && protocol === 'http:' && !isLoopbackName(hostname))
      found.push(
        `ACCORD_CORS_ORIGINS has ${origin}: without TLS, an attacker on the network can act as that page. Use https.`,
      )
    return found
  })
}

function passwordHints({ env, adminPassword }: Config): string[] {
  return env === 'production' && adminPassword !== null
    ? ['ACCORD_ADMIN_PASSWORD is still set, but only the installation reads it. Remove it from the environment.']
    : []
}

function inboundMailHints({ mailReceiver, inboundOpen }: Config): string[] {
  return mailReceiver === 'sendgrid' && inboundOpen
    ? [
        'ACCORD_INBOUND_OPEN is on, so any sender can post e-mails. Give the mail service the address that `accord install` prints, then remove the setting.',
      ]
    : []
}

const maySignIn = (origin: string, domains: readonly string[]): boolean =>
  isStatefulHost({ origin, referer: undefined, requestOrigin: '' }, domains)
