// Storage errors as 503 (DOMAIN 4.2): the caller should try again later. Also optional writes,
// whose failure must not fail a request.
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
  unreachable: ['The database server does not answer; nothing was written.', '5'],
  damaged: ['The database of this server is damaged; it has to be restored from a backup.', '60'],
}

/** Returns the 503 for a storage error; null for any other error and for a Problem. */
export function toUnavailableProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return null
  const trouble = storageFaultOf(error)
  if (trouble === null) return null
  const [sentence, seconds] = words[trouble]
  return new Problem('unavailable', sentence, { cause: error, headers: { 'retry-after': seconds } })
}

const aside = new WeakMap<Services['store'], Set<string>>()

/**
 * Starts an optional write, such as the last use of a token, without waiting for it: a read must
 * not wait for a write. While a write of that name is under way, another one is dropped.
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
    // The database may already be closed.
    .catch((error: unknown) => log.warn({ err: error }, 'An optional write beside a request failed.'))
    .finally(() => underWay.delete(name))
}

/** Runs an optional write. A storage error is ignored, any other error is thrown. */
export async function bestEffort(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (storageFaultOf(error) === null) throw error
  }
}
