// From which hosts people may sign in (DOMAIN 6.2). A pure function of what the request says about its origin, so that every
// rule of it can be tried on its own.

export interface Calling {
  origin: string | undefined
  referer: string | undefined
  /** Scheme and host the request was sent to. */
  calledAt: string
}

/** Whether the host the request comes from matches an entry of the list. `*` stands for one or more characters. */
export function isStatefulHost(calling: Calling, domains: readonly string[]): boolean {
  if (domains.includes('*')) return true
  const spellings = spellingsOf(calling)
  return domains.some((entry) => {
    const pattern = patternOf(entry)
    return spellings.some((each) => pattern.test(each))
  })
}

/**
 * The calling host: of Origin, else of Referer, else the one the request was sent to; in lower case, IPv6 in brackets. The
 * scheme's default port is dropped, but an entry may name it. What is present but cannot be read names no host.
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
