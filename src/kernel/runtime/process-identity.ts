// Names for processes that hold a job or a lock, by which others can tell that such a process is gone. Only of processes whose
// numbers mean the same here is anything known: two containers each have a process 1.
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

interface Owner {
  host: string
  place: string
  pid: number
  /** When it began, in ticks of the machine; empty where that cannot be known. */
  began: string
}

/** A name for one worker or scheduler of this process. */
export const newOwnerId = (): string => nameOf(self, randomUUID())

export const nameOf = ({ host, place, pid, began }: Owner, unique: string): string =>
  [host, place, pid, began, unique].join(':')

/** Whether the owner was a process that is gone. Of one that cannot be seen from here nothing is known: its lease ends by itself. */
export function isProcessGone(owner: string): boolean {
  const [host, place, number, began = ''] = owner.split(':')
  const pid = Number(number)
  if (host !== self.host || place !== self.place || !Number.isSafeInteger(pid) || pid < 1) return false
  const found = beginning(pid)
  // Another process has the number by now.
  if (found !== null && began !== '') return found !== began
  try {
    process.kill(pid, 0)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/**
 * What is known of the owner of something without a lease. 'gone' as well when the machine has been started again since; 'unknown' on
 * another machine or in another container.
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
 * Where numbers of processes mean the same: one run of a kernel, and there one namespace. A namespace that is gone may have left its
 * number to another, but then its processes are gone as well. Elsewhere than on Linux there is one for each machine.
 */
function placeHere(): string {
  if (process.platform !== 'linux') return 'machine'
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid').replaceAll(/\D/g, '')}`
  } catch {
    // Like no other place.
    return randomUUID()
  }
}

/** Null where the system does not say, or there is no such process. One that has ended and was not yet waited for counts as none. */
function beginning(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, which may hold anything, ends with the last bracket.
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
