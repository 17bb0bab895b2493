// The check of Host headers.
import { LRUCache } from 'lru-cache'

const maxHosts = 100
/** Most requests name the same host. */
const hosts = new LRUCache<string, boolean>({ max: maxHosts })

/** With or without a port. Any other text must not become part of a URL. */
export function isValidHost(text: string): boolean {
  const known = hosts.get(text)
  if (known !== undefined) return known
  const is = /^(\[[\da-f:.]+\]|[\w.~-]+)(:\d+)?$/i.test(text) && URL.canParse(`http://${text}`)
  hosts.set(text, is)
  return is
}
