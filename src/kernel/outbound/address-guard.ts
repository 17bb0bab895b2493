// The network addresses that an outgoing call may reach (DOMAIN 18.5). A mapped, translated or
// tunnelled address is refused like the address it may stand for, because its target is unknown.
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

export type AddressCheck = (address: string) => string | null

/**
 * The range assigned to the public internet; all other IPv6 addresses are special or unassigned.
 */
const publicV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/**
 * Public addresses that answer only inside a data center: Azure's services for its virtual
 * machines.
 */
const ofPlatforms = ['168.63.129.16']

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
 * Returns a check that answers the fault of an address ("a loopback"), or null for an allowed
 * address. Throws on an invalid network in the list.
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
  if (ofPlatforms.includes(address.toString())) return "a platform's own"
  const range = address.range()
  if (range !== 'unicast') return words[range] ?? 'a reserved'
  return address.kind() === 'ipv6' && !within(address, publicV6) ? 'a reserved' : null
}

const within = (address: Address, [base, bits]: [Address, number]): boolean =>
  address.kind() === base.kind() && address.match(base, bits)

/** Parses a network; a single address counts as a network of one address. */
function network(text: string): [Address, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
