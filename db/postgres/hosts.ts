// The servers that a URL of a database names, and the one that connections go to. A URL may name
// several servers, as in libpq: `postgres://user@one:5432,two/crm?target_session_attrs=read-write`.

/** Splits a URL into the part before its hosts, the hosts, and the path with the parameters. */
const hostsPattern = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/
const roleParameter = /([?&])target_session_attrs=([^&]*)(&|$)/
/** The values of libpq that lead to a server which accepts writes. */
const writableRoles = ['read-write', 'primary']

/** Returns a URL for each host, without the parameter that pg does not know. */
function urlsOf(url: string): string[] {
  const plain = url.replace(roleParameter, (_, before: string, __, after: string) => (after === '' ? '' : before))
  const [, head = '', hosts = '', rest = ''] = hostsPattern.exec(plain) ?? []
  return hosts.includes(',') ? hosts.split(',').map((host) => `${head}${host}${rest}`) : [plain]
}

/** Returns the URL of the first host, which has the form of an ordinary URL. */
export const firstHostUrl = (url: string): string => urlsOf(url)[0] ?? url

/** Returns the URL for libpq, which then chooses among several hosts as Accord does. */
export const withRole = (url: string): string =>
  urlsOf(url).length === 1 || roleParameter.test(url)
    ? url
    : `${url}${url.includes('?') ? '&' : '?'}target_session_attrs=read-write`

/**
 * The hosts of a URL in their order. New connections go to one of them until it fails; then the
 * next one is tried, and the first one after the last.
 */
export class Hosts {
  readonly #urls: readonly string[]
  /** Whether a connection may be used only if its server accepts writes. */
  readonly mustAcceptWrites: boolean
  #index = 0
  #generation = 0

  /**
   * With `accepts: 'any'` a standby is as good as a primary. Throws for a `target_session_attrs`
   * that contradicts `accepts`.
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

  /** Changes when the present connections must no longer be used. */
  get generation(): number {
    return this.#generation
  }

  /**
   * Called when a new connection to the URL failed. Connections that are open stay in use, because
   * one slow connection says little about them.
   */
  leave(url: string): void {
    if (url === this.url) this.#index = (this.#index + 1) % this.count
  }

  /** Called when the server is a standby or no longer answers: its connections are of no use. */
  renew(): void {
    this.#generation += 1
  }
}
