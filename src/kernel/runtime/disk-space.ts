// Reports whether the disk has free space. To test this, it writes a small file, at most once every
// three seconds.
import { statfs, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Store } from '../../../db/store.ts'
import type { Clock } from './clock.ts'
import { ttlCache } from './ttl-cache.ts'

export type DiskState = 'ok' | 'low' | 'full'

export interface Room {
  /** The number of bytes that this program may still write. */
  free: number
  size: number
}

/**
 * The file system operations that this file uses. A test can pass an implementation with a full
 * disk.
 */
export interface Volume {
  room(folder: string): Promise<Room>
  /** Writes a file of `bytes` bytes and removes it. Rejects when the write fails. */
  probe(folder: string, bytes: number): Promise<void>
}

export interface Disk {
  state(): Promise<DiskState>
  /**
   * Returns the space in the folder with the fewest free bytes; undefined where the system does not
   * report free space.
   */
  room(): Promise<Room | undefined>
}

const lowBytes = 1024 ** 3
const lowShare = 0.05
/**
 * The number of bytes that one change needs in the write-ahead log. After a write error the test
 * requires more bytes, so that the state does not alternate between `ok` and `full`.
 */
const probeBytes = 64 * 1024
const probeBytesAfterTrouble = 1024 * 1024
const holdsMs = 3000

export const realVolume: Volume = {
  async room(folder) {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { free: bavail * bsize, size: blocks * bsize }
  },
  async probe(folder, bytes) {
    // The name contains the process id, because another process may test the same folder at the
    // same time.
    const path = join(folder, `.probe-${process.pid}`)
    try {
      await writeFile(path, Buffer.alloc(bytes, 1), { flush: true })
    } finally {
      await unlink(path).catch(() => undefined)
    }
  },
}

/** The functions of the store that report its last write error and retry the write. */
type Written = Pick<Store, 'health' | 'retryWrite'>

/**
 * Returns an object that checks all folders to which data is written. The folder in the worst state
 * determines the result.
 */
export function createDisk(
  folders: readonly string[],
  { clock, store, volume = realVolume }: { clock: Clock; store: Written; volume?: Volume | undefined },
): Disk {
  const latestState = ttlCache<DiskState>(holdsMs)

  async function measure(): Promise<DiskState> {
    const bytes = store.health() === null ? probeBytes : probeBytesAfterTrouble
    const states = await Promise.all(folders.map((folder) => measureFolder(folder, bytes)))
    // The database may refuse writes although every folder has free space.
    if (states.includes('full') || (await store.retryWrite()) !== null) return 'full'
    return states.includes('low') ? 'low' : 'ok'
  }

  async function measureFolder(folder: string, bytes: number): Promise<DiskState> {
    try {
      await volume.probe(folder, bytes)
    } catch (cause) {
      // A missing folder is not an error: the first file creates the folder.
      return codeOf(cause) === 'ENOENT' ? 'ok' : 'full'
    }
    const { free, size } = await volume.room(folder)
    return free < lowBytes || free < size * lowShare ? 'low' : 'ok'
  }

  async function roomIn(folder: string): Promise<Room[]> {
    return volume.room(folder).then(
      (room) => [room],
      () => [],
    )
  }

  return {
    state: () => latestState(store, clock.now().getTime(), measure),
    async room() {
      const rooms = (await Promise.all(folders.map(roomIn))).flat()
      return rooms.sort((one, other) => one.free - other.free)[0]
    },
  }
}

const codeOf = (cause: unknown): unknown => (cause as { code?: unknown } | null)?.code
