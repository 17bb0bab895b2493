// Parses the hosts of a database URL and chooses the host for new connections. As in libpq, a URL
// may name several hosts: `postgres://user@one:5432,two/crm?target_session_attrs=read-write`.

/** Splits a URL into the part before its hosts, the hosts, and the path with the parameters. */
const hostsPattern = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/
const roleParameter = /([?&])target_session_attrs=([^&]*)(&|$)/
const sslMode = /([?&]sslmode=)([^&]*)/
/** The values of `target_session_attrs` that require a server that accepts writes. */
const writableRoles = ['read-write', 'primary']

/**
 * Returns a URL for each host, without `target_session_attrs`, which the package pg does not
 * support. The package then reads `sslmode` as libpq does.
 */
function urlsOf(url: string): string[] {
  const plain = url.replace(roleParameter, (_, before: string, __, after: string) => (after === '' ? '' : before))
  const [, head = '', hosts = '', rest = ''] = hostsPattern.exec(plain) ?? []
  return hosts.includes(',') ? hosts.split(',').map((host) => `${head}${host}${rest}`) : [plain]
}

/** Returns the URL for the package pg, whose `sslmode` it reads as libpq does. */
export const pgUrl = (url: string): string => {
  const mode = sslMode.exec(url)?.[2]
  if (mode === undefined || mode === 'no-verify') return url
  return `${url.replace(sslMode, `$1${mode === 'allow' ? 'prefer' : mode}`)}&uselibpqcompat=true`
}

/** Returns the URL with its first host only, which `new URL()` can parse. */
export const firstHostUrl = (url: string): string => urlsOf(url)[0] ?? url

/**
 * Returns the URL for programs with libpq. With several hosts it requires a server that accepts
 * writes, as `Hosts` does. libpq has no mode `no-verify`; its mode `require` is the same.
 */
export function libpqUrl(url: string): string {
  const plain = url.replace(sslMode, (whole, before: string, mode: string) =>
    mode === 'no-verify' ? `${before}require` : whole,
  )
  return urlsOf(plain).length === 1 || roleParameter.test(plain)
    ? plain
    : `${plain}${plain.includes('?') ? '&' : '?'}target_session_attrs=read-write`
}

/**
 * The hosts of a URL. New connections use the current host until a connection fails. Then the next
 * host in the list becomes current, and after the last host the first one.
 */
export class Hosts {
  readonly #urls: string[]
  /** Whether each new connection must check that its server accepts writes. */
  readonly mustAcceptWrites: boolean
  #index = 0
  #generation = 0

  /**
   * With `accepts: 'any'`, a standby may be used. Otherwise throws for a `target_session_attrs`
   * that allows a standby.
   */
  constructor(url: string, accepts: 'writes' | 'any' = 'writes') {
    this.#urls = urlsOf(url)
    const role = roleParameter.exec(url)?.[2]
    if (accepts === 'writes' && role !== undefined && !writableRoles.includes(role))
      throw new Error(`target_session_attrs must be ${writableRoles.join(' or ')}, because Accord writes`)
    this.mustAcceptWrites = accepts === 'writes' && (role !== undefined || this.#urls.length > 1)
  }

  get count(): number {
    return this.#urls.length
  }

  get url(): string {
    return this.#urls[this.#index] ?? ''
  }

  /** The number of `renew` calls. Connections of an earlier generation must not be used. */
  get generation(): number {
    return this.#generation
  }

  /**
   * Called when the server of the URL has no TLS. Returns whether the URL allows a connection
   * without it, as the modes `allow` and `prefer` do; later connections then use none.
   */
  leaveTls(url: string): boolean {
    const index = this.#urls.indexOf(url)
    if (index < 0 || !['allow', 'prefer'].includes(sslMode.exec(url)?.[2] ?? '')) return false
    this.#urls[index] = url.replace(sslMode, '$1disable')
    return true
  }

  /**
   * Called after a new connection to the URL failed. Open connections stay in use, because a single
   * failure may have another cause than a stopped server.
   */
  leave(url: string): void {
    if (url === this.url) this.#index = (this.#index + 1) % this.count
  }

  /**
   * Called when the server is a standby or no longer answers. Its open connections must not be
   * used.
   */
  renew(): void {
    this.#generation += 1
  }
}
