// Validates Host headers, because URLs in replies contain the host.
import { LRUCache } from 'lru-cache'

const maxHosts = 100
/** Cached results, because most requests have the same Host header. */
const hosts = new LRUCache<string, boolean>({ max: maxHosts })

/** Returns whether the text is a host, with or without a port. */
export function isValidHost(text: string): boolean {
  const known = hosts.get(text)
  if (known !== undefined) return known
  const is = /^(\[[\da-f:.]+\]|[\w.~-]+)(:\d+)?$/i.test(text) && URL.canParse(`http://${text}`)
  hosts.set(text, is)
  return is
}
