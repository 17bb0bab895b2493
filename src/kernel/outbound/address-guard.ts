// Which network addresses a call to outside may reach (DOMAIN 18.5). What stands for something else (a mapped, translated or
// tunnelled address) is refused like what it may stand for, because nobody can say where it leads.
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

export type AddressCheck = (address: string) => string | null

/** What is assigned to the public internet; everything else of IPv6 is special or nobody's. */
const publicV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/** Public by number, and answered inside a data centre to whoever runs there: the services of Azure to its machines. */
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

/** Answers what is wrong with an address ("a loopback"), null for one that may be reached. Throws on a network that is none. */
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

/** A network, or one address as a network of one. */
function network(text: string): [Address, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
