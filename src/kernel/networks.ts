// Addresses of callers and the networks they may come from (DOMAIN 6.4): single addresses and CIDR, of either family.
import ipaddr from 'ipaddr.js'

export const isNetwork = (text: string): boolean => ipaddr.isValid(text) || ipaddr.isValidCIDR(text)

function networkOf(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** Whether every address of a network is in one of the others; in none of none. */
export function isWithin(text: string, networks: readonly string[]): boolean {
  const [address, bits] = networkOf(text)
  return networks.some((each) => {
    const [range, rangeBits] = networkOf(each)
    return range.kind() === address.kind() && rangeBits <= bits && address.match(range, rangeBits)
  })
}

/** Whether an address is one of these, or in one of these networks. */
export function isAmong(ip: string, networks: readonly string[]): boolean {
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.process(ip)
  return networks.some((network) => {
    if (!ipaddr.isValidCIDR(network))
      return ipaddr.process(network).toNormalizedString() === address.toNormalizedString()
    const [range, bits] = ipaddr.parseCIDR(network)
    return range.kind() === address.kind() && address.match(range, bits)
  })
}

export const isLoopback = (ip: string): boolean => ipaddr.isValid(ip) && ipaddr.process(ip).range() === 'loopback'
