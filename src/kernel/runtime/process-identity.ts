// Owner ids of processes that hold a job or a lock, so that another process can tell when the owner
// is gone. Process ids are compared only within one pid namespace, because two containers each have
// a process 1.
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

interface Owner {
  host: string
  place: string
  pid: number
  /** Its start time in clock ticks since boot; empty where the system does not report it. */
  began: string
}

/** An id for one worker or scheduler of this process. */
export const newOwnerId = (): string => nameOf(self, randomUUID())

export const nameOf = ({ host, place, pid, began }: Owner, unique: string): string =>
  [host, place, pid, began, unique].join(':')

/**
 * Whether the owner's process has certainly ended. False for a process of another namespace; its
 * lease expires.
 */
export function isProcessGone(owner: string): boolean {
  const [host, place, number, began = ''] = owner.split(':')
  const pid = Number(number)
  if (host !== self.host || place !== self.place || !Number.isSafeInteger(pid) || pid < 1) return false
  const found = beginning(pid)
  // Another process may have the pid now.
  if (found !== null && began !== '') return found !== began
  try {
    process.kill(pid, 0)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/**
 * The state of an owner without a lease: 'gone' also after a reboot, 'unknown' on another machine
 * or in another container.
 */
export function ownerState(owner: string): 'alive' | 'gone' | 'unknown' {
  const [host, place = ''] = owner.split(':')
  if (host !== self.host) return 'unknown'
  if (place === self.place) return isProcessGone(owner) ? 'gone' : 'alive'
  const [boot, bootHere] = [bootOf(place), bootOf(self.place)]
  return boot !== null && bootHere !== null && boot !== bootHere ? 'gone' : 'unknown'
}

const bootOf = (place: string): string | null => /^(.+)\/\d+$/.exec(place)?.[1] ?? null

/**
 * The scope in which a pid is unique: the boot and the pid namespace. A namespace number can be
 * reused, but only after its processes have ended. Other systems than Linux have one scope for each
 * machine.
 */
function placeHere(): string {
  if (process.platform !== 'linux') return 'machine'
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid').replaceAll(/\D/g, '')}`
  } catch {
    // Unlike any other scope.
    return randomUUID()
  }
}

/**
 * The start time of a process; 'ended' for a zombie, null without such a process or without /proc.
 */
function beginning(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The program name can contain anything, so fields are counted from the last bracket.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? 'ended' : (rest[18] ?? null)
  } catch {
    return null
  }
}

export const self: Owner = {
  host: hostname().replaceAll(':', '-'),
  place: placeHere(),
  pid: process.pid,
  began: beginning(process.pid) ?? '',
}
