// Who comes again. Where memory is short, what is asked for once and never more is not worth a place in it: it takes that of something
// else, and collecting what was kept for nothing takes its time.

export type Doorkeeper = (key: string) => boolean

/** One key each, in 512 KiB: the last that came of those whose place it is. */
const places = 2 ** 17

/** Whether a key was seen before and is still remembered; hardly ever it is taken for another one. */
export function createDoorkeeper(): Doorkeeper {
  const seen = new Uint32Array(places)
  return (key) => {
    const mark = markOf(key)
    const place = mark % places
    const isKnown = seen[place] === mark
    seen[place] = mark
    return isKnown
  }
}

/** FNV-1a, mixed once more so that its lower bits depend on all of the key. Never 0, which is an empty place. */
function markOf(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0 || 1
}
