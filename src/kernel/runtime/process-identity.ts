// Owner ids identify the process that holds a job or a lock. Another process can thereby tell
// whether the holder has ended. Process ids are compared only within one pid namespace, because two
// containers can each have a process 1.
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

interface Owner {
  host: string
  place: string
  pid: number
  /**
   * The start time of the process in clock ticks since boot; empty where the system does not report
   * it.
   */
  began: string
}

/** Returns a new owner id for one worker or scheduler of this process. */
export const newOwnerId = (): string => nameOf(self, randomUUID())

export const nameOf = ({ host, place, pid, began }: Owner, unique: string): string =>
  [host, place, pid, began, unique].join(':')

/**
 * Returns whether the owner's process has certainly ended. Returns false for a process in another
 * namespace; the lock of such a process is freed when the lease expires.
 */
export function isProcessGone(owner: string): boolean {
  const [host, place, number, began = ''] = owner.split(':')
  const pid = Number(number)
  if (host !== self.host || place !== self.place || !Number.isSafeInteger(pid) || pid < 1) return false
  const found = beginning(pid)
  // Compares start times, because a new process may have the same pid.
  if (found !== null && began !== '') return found !== began
  try {
    process.kill(pid, 0)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Returns the process of an owner for a message: `process 4711 on crm-1`. */
export function processOf(owner: string): string {
  const [host = '', , pid = ''] = owner.split(':')
  return `process ${pid} on ${host}`
}

/**
 * Returns whether the process of an owner is alive, for locks that never expire. An owner from
 * before a reboot is 'gone'. An owner on another machine or in another container is 'unknown'.
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
 * Returns the scope in which a pid is unique: the boot and the pid namespace. A namespace number is
 * reused only after all processes of the namespace have ended. On systems other than Linux, the
 * whole machine is one scope.
 */
function placeHere(): string {
  if (process.platform !== 'linux') return 'machine'
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid').replaceAll(/\D/g, '')}`
  } catch {
    // A random id never equals another scope, so owners are not compared.
    return randomUUID()
  }
}

/**
 * Returns the start time of a process; 'ended' for a zombie. Returns null when the process does not
 * exist or the system has no /proc.
 */
function beginning(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The program name, in brackets, can contain any character. Fields are therefore counted from
    // the last closing bracket.
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
