// Which Host headers name a host.

const mostHosts = 100
const hosts = new Map<string, boolean>()

/** With or without a port. Nothing else becomes part of an address. */
export function isHost(text: string): boolean {
  const known = hosts.get(text)
  if (known !== undefined) return known
  const is = /^(\[[\da-f:.]+\]|[\w.~-]+)(:\d+)?$/i.test(text) && URL.canParse(`http://${text}`)
  // Most requests name the same one.
  if (hosts.size >= mostHosts) hosts.clear()
  hosts.set(text, is)
  return is
}
