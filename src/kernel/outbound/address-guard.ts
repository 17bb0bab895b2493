// Decides which network addresses an outgoing call may reach. An IPv6 address that is
// mapped, translated or tunneled to an IPv4 address is refused, because it could bypass the check
// of the IPv4 address.
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

export type AddressCheck = (address: string) => string | null

/** The IPv6 range of the public internet. All other IPv6 addresses are special or unassigned. */
const publicV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/**
 * Addresses in public ranges that reach services of the hosting platform. 168.63.129.16 is the
 * platform service for virtual machines in Azure.
 */
const platformAddresses = ['168.63.129.16']

const words: Record<string, string> = {
  unspecified: 'an unspecified',
  broadcast: 'a broadcast',
  multicast: 'a multicast',
  linkLocal: 'a link-local',
  loopback: 'a loopback',
  private: 'a private',
  uniqueLocal: 'a unique-local',
  carrierGradeNat: 'a carrier-grade NAT',
  ipv4Mapped: 'an IPv4-mapped',
  rfc6145: 'a translated',
  rfc6052: 'a translated',
  '6to4': 'a 6to4',
  teredo: 'a tunnelled',
}

/**
 * Returns a function that checks an address. It returns null for an allowed address, else the
 * reason for a message, such as "a loopback". `addressCheck` throws when a network in `allowCidrs`
 * is invalid.
 */
export function addressCheck(allowCidrs: readonly string[]): AddressCheck {
  const allowed = allowCidrs.map(network)
  return (text) => {
    if (!ipaddr.isValid(text)) return 'an unreadable'
    const address = ipaddr.parse(text)
    const isAllowed = [address, ipaddr.process(text)].some((each) => allowed.some((cidr) => within(each, cidr)))
    return isAllowed ? null : kindOf(address)
  }
}

function kindOf(address: Address): string | null {
  if (platformAddresses.includes(address.toString())) return "a platform's own"
  const range = address.range()
  if (range !== 'unicast') return words[range] ?? 'a reserved'
  return address.kind() === 'ipv6' && !within(address, publicV6) ? 'a reserved' : null
}

const within = (address: Address, [base, bits]: [Address, number]): boolean =>
  address.kind() === base.kind() && address.match(base, bits)

/**
 * Parses a network in CIDR notation. A single address becomes a network that contains only this
 * address.
 */
function network(text: string): [Address, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
