// Simulates a disk after a power cut: it contains all synced data and any part of the later writes.

/** A write, or a truncation to a length. */
type Change = { at: number; bytes: Buffer } | { length: number }

const sector = 512

class Bytes {
  #room = Buffer.alloc(0)
  length = 0

  resize(length: number): void {
    if (length > this.#room.length) this.#room = Buffer.concat([this.#room], 2 * length)
    if (length < this.length) this.#room.fill(0, length, this.length)
    this.length = length
  }

  /** Applies a change. `isThere` decides for each sector whether it was written. */
  apply(change: Change, isThere: () => boolean): void {
    if ('length' in change) {
      if (isThere()) this.resize(change.length)
      return
    }
    const end = change.at + change.bytes.length
    for (let from = change.at, to = 0; from < end; from = to) {
      to = Math.min(end, (Math.floor(from / sector) + 1) * sector)
      if (!isThere()) continue
      this.resize(Math.max(this.length, to))
      change.bytes.copy(this.#room, from, from - change.at, to - change.at)
    }
  }

  copy(): Bytes {
    const copy = new Bytes()
    copy.resize(this.length)
    copy.apply({ at: 0, bytes: this.whole() }, always)
    return copy
  }

  whole = (): Buffer => this.#room.subarray(0, this.length)
}

const always = (): boolean => true

export class Disk {
  readonly #files = new Map<string, { durable: Bytes; pending: Change[] }>()
  /** The running syncs by thread. */
  readonly #syncing = new Map<string, () => void>()

  #file(name: string) {
    const known = this.#files.get(name) ?? { durable: new Bytes(), pending: [] }
    this.#files.set(name, known)
    return known
  }

  change(name: string, change: Change): void {
    this.#file(name).pending.push(change)
  }

  remove(name: string): void {
    this.#files.delete(name)
  }

  syncBegins(thread: string, name: string): void {
    const file = this.#file(name)
    const before = new Set(file.pending)
    this.#syncing.set(thread, () => {
      for (const change of file.pending) if (before.has(change)) file.durable.apply(change, always)
      file.pending = file.pending.filter((change) => !before.has(change))
    })
  }

  syncEnds(thread: string): void {
    this.#syncing.get(thread)?.()
    this.#syncing.delete(thread)
  }

  isSynced = (name: string): boolean => this.#file(name).pending.length === 0

  /**
   * Returns the file after a power cut. Each sector that was written since the last sync has its
   * new content with the probability `share`.
   */
  after(name: string, share: number, random: () => number): Buffer {
    const { durable, pending } = this.#file(name)
    const left = durable.copy()
    for (const change of pending) left.apply(change, () => random() < share)
    return left.whole()
  }
}
