// Decides which web pages may use sessions, by the host in the request's headers. All
// functions are pure.

export interface PageOrigin {
  origin: string | undefined
  referer: string | undefined
  /** The scheme and host to which the request was sent. */
  requestOrigin: string
}

/**
 * Returns whether the host of the page that sent the request matches an entry of `domains`. In an
 * entry, `*` matches one or more characters.
 */
export function isStatefulHost(calling: PageOrigin, domains: readonly string[]): boolean {
  if (domains.includes('*')) return true
  const spellings = spellingsOf(calling)
  return domains.some((entry) => {
    const pattern = patternOf(entry)
    return spellings.some((each) => pattern.test(each))
  })
}

/**
 * Returns the spellings of the host of the page that sent the request, in lower case. The host
 * comes from the Origin header, else from Referer, else from `requestOrigin`. A host on the default
 * port has two spellings: with and without the port. An unreadable header yields none.
 */
function spellingsOf(calling: PageOrigin): string[] {
  const url = callingUrl(calling)
  if (url === null || url.host === '') return []
  const name = url.host.toLowerCase()
  return url.port === '' ? [name, `${name}:${url.protocol === 'https:' ? 443 : 80}`] : [name]
}

function callingUrl({ origin, referer, requestOrigin }: PageOrigin): URL | null {
  const said = origin !== undefined && origin !== 'null' ? origin : (referer ?? requestOrigin)
  return URL.canParse(said) ? new URL(said) : null
}

/**
 * Returns the host of the page that sent the request, in the form in which an entry of `domains`
 * would allow it. Returns null for an unreadable header.
 */
export function callingHost(calling: PageOrigin): string | null {
  const host = callingUrl(calling)?.host.toLowerCase() ?? ''
  return host === '' ? null : host.slice(0, maxHostLength)
}

/** The maximum length of a domain name and a port. */
const maxHostLength = 260

function patternOf(entry: string): RegExp {
  const escaped = entry
    .trim()
    .toLowerCase()
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${escaped.join('.+')}$`)
}
