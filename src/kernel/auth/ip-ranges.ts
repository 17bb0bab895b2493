// Handles the IP addresses of callers: their canonical form, the client network, and the ranges
// from which a token may be used.
import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * Returns the canonical form of an IP address; undefined when the text is not an IP address.
 * Accepts the notations of proxies: `192.0.2.7:4711`, `[2001:db8::1]:4711`, `::ffff:192.0.2.7`,
 * `fe80::1%eth0`.
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  const [bare = ''] = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .split('%', 1)
  return isIP(bare) === 0 ? undefined : ipaddr.process(bare).toString()
}

/**
 * Returns the client network by which calls are counted. It is the IPv4 address itself, or the /64
 * network of an IPv6 address, because one client usually has a whole /64.
 */
export function clientNetwork(ip: string): string {
  const plain = plainAddress(ip)
  if (plain === undefined || isIPv4(plain)) return plain ?? ip
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64`
}

export const isNetwork = (text: string): boolean => ipaddr.isValid(text) || ipaddr.isValidCIDR(text)

function rangeOf(text: string): [Address, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** Returns whether the network `text` lies inside one of `networks`. */
export function isSubnetOf(text: string, networks: readonly string[]): boolean {
  const [address, bits] = rangeOf(text)
  return networks.some((each) => {
    const [range, rangeBits] = rangeOf(each)
    return range.kind() === address.kind() && rangeBits <= bits && address.match(range, rangeBits)
  })
}

/** Returns a function that tests whether an IP address is in one of the networks. */
export function memberOf(networks: readonly string[]): (ip: string) => boolean {
  const ranges = networks.map(rangeOf)
  return (ip) => {
    const plain = plainAddress(ip)
    if (plain === undefined) return false
    const address = ipaddr.parse(plain)
    return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
  }
}

export const isInRanges = (ip: string, networks: readonly string[]): boolean => memberOf(networks)(ip)

export const isLoopback = (ip: string): boolean => ipaddr.isValid(ip) && ipaddr.process(ip).range() === 'loopback'
