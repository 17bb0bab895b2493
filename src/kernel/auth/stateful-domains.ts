// Decides which hosts may use sessions (DOMAIN 6.2), by pure functions of the request's headers.

export interface Calling {
  origin: string | undefined
  referer: string | undefined
  /** Scheme and host to which the request was sent. */
  calledAt: string
}

/**
 * Returns whether the host of the calling page matches an entry of the list. `*` stands for one or
 * more characters.
 */
export function isStatefulHost(calling: Calling, domains: readonly string[]): boolean {
  if (domains.includes('*')) return true
  const spellings = spellingsOf(calling)
  return domains.some((entry) => {
    const pattern = patternOf(entry)
    return spellings.some((each) => pattern.test(each))
  })
}

/**
 * Returns the spellings of the calling page's host. It is taken from Origin, else from Referer,
 * else from the host to which the request was sent; in lower case, IPv6 in brackets. The default
 * port of the scheme is dropped, but an entry may contain it. An unreadable header yields no host.
 */
function spellingsOf({ origin, referer, calledAt }: Calling): string[] {
  const said = origin !== undefined && origin !== 'null' ? origin : (referer ?? calledAt)
  if (!URL.canParse(said)) return []
  const { host, port, protocol } = new URL(said)
  if (host === '') return []
  const name = host.toLowerCase()
  return port === '' ? [name, `${name}:${protocol === 'https:' ? 443 : 80}`] : [name]
}

function patternOf(entry: string): RegExp {
  const escaped = entry
    .trim()
    .toLowerCase()
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${escaped.join('.+')}$`)
}
