// Which Host headers name a host.

const maxHosts = 100
const hosts = new Map<string, boolean>()

/** With or without a port. Nothing else becomes part of an address. */
export function isValidHost(text: string): boolean {
  const known = hosts.get(text)
  if (known !== undefined) return known
  const is = /^(\[[\da-f:.]+\]|[\w.~-]+)(:\d+)?$/i.test(text) && URL.canParse(`http://${text}`)
  // Most requests name the same one.
  if (hosts.size >= maxHosts) hosts.clear()
  hosts.set(text, is)
  return is
}
