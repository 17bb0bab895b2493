// The hosts that may use sessions (DOMAIN 6.2), as pure functions of the request's headers.

export interface Calling {
  origin: string | undefined
  referer: string | undefined
  /** Scheme and host that the request was sent to. */
  calledAt: string
}

/**
 * Whether the host the request comes from matches an entry of the list. `*` stands for one or more
 * characters.
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
 * The host of the calling page: from Origin, else from Referer, else the host the request was sent
 * to; in lower case, IPv6 in brackets. The default port of the scheme is dropped, but an entry may
 * name it. An unreadable header names no host.
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
