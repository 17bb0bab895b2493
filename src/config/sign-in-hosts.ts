// The hosts that users may sign in from, and a warning when the server accepts calls
// from other machines but allows sign-in only at localhost.
import { isIP } from 'node:net'
import type { Config } from './config.ts'

/** The default hosts, which all mean this machine. */
const localHosts = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns the hosts that users may sign in from. `port` is the port of the server.
 */
export function statefulDomains(config: Config, port: number): string[] {
  if (config.statefulDomains.length > 0) return config.statefulDomains
  const local = localHosts.flatMap((host) => [host, `${host}:${port}`])
  return config.appUrl ? [...local, new URL(config.appUrl).host] : local
}

export const isLoopbackName = (host: string): boolean =>
  /^(localhost|.*\.localhost|\[?::1\]?)$/.test(host) || (isIP(host) === 4 && host.startsWith('127.'))

/**
 * Returns a warning when the server accepts calls from other machines but users can sign in on this
 * machine only; otherwise null.
 */
export function signInWarning(config: Config): string | null {
  const { host, appUrl } = config
  const isNamed = config.statefulDomains.length > 0 || (appUrl !== null && !isLoopbackName(new URL(appUrl).hostname))
  if (isLoopbackName(host) || isNamed) return null
  return `ACCORD_HOST is ${host}, which accepts calls from other machines, but users can sign in at localhost only: a sign-in at any other host gets 401. Name the host that users type, for example ACCORD_STATEFUL_DOMAINS=${[...localHosts, 'crm.example.com'].join(',')}`
}
