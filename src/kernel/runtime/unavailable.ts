// What a caller is told when the data cannot be read or written at the moment (DOMAIN 4.2, 503): a reason to come again, not a
// defect. And what is written for the record only: it must not keep anybody from reading.
import { storageFaultOf, type Trouble } from '../../../db/storage-errors.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'

const words: Readonly<Record<Trouble, readonly [sentence: string, seconds: string]>> = {
  busy: ['The database is busy.', '1'],
  full: ['The disk of this server is full; nothing was written.', '10'],
  readonly: ['The data of this server cannot be written at the moment; nothing was changed.', '30'],
  failing: ['The disk of this server does not answer as it should; nothing was written.', '10'],
  uncertain: ['The disk of this server does not answer as it should; whether the change is kept is not certain.', '10'],
  lost: ['The data folder or the database of this server was removed or replaced; nothing was written.', '30'],
  damaged: ['The database of this server is damaged; it has to be restored from a backup.', '60'],
}

/** The 503 for an error of the place where the data is; null for any other, and for a problem that says itself what it is. */
export function toUnavailableProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return null
  const trouble = storageFaultOf(error)
  if (trouble === null) return null
  const [sentence, seconds] = words[trouble]
  return new Problem('unavailable', sentence, { cause: error, headers: { 'retry-after': seconds } })
}

const aside = new WeakMap<Services['store'], Set<string>>()

/**
 * Writes what no answer depends on, such as when a token was used last, and does not wait for it: a read must not wait for a write. One
 * write of a name is under way at a time.
 */
export function writeAside(
  { store, log }: Pick<Services, 'store' | 'log'>,
  name: string,
  work: () => Promise<unknown>,
): void {
  const underWay = aside.get(store) ?? new Set<string>()
  aside.set(store, underWay)
  if (underWay.has(name)) return
  underWay.add(name)
  bestEffort(work)
    // The database may be closed by now.
    .catch((error: unknown) => log.warn({ err: error }, 'What was to be noted beside a request was not written.'))
    .finally(() => underWay.delete(name))
}

/** Writes what nobody waits for, such as when a token was used last. Where that cannot be written, all goes on without. */
export async function bestEffort(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (storageFaultOf(error) === null) throw error
  }
}
