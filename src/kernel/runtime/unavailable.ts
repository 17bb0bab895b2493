// Turns storage errors into 503 responses, so that the caller tries again later. Also
// runs optional writes, whose failure must not fail a request.

import type { StorageFault } from '../../../db/dialect.ts'
import { storageFaultOf } from '../../../db/storage-errors.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'
import { perOwner } from './per-owner.ts'

const words: Readonly<Record<StorageFault, readonly [sentence: string, seconds: string]>> = {
  busy: ['The database is busy.', '1'],
  full: ['The disk of this server is full; nothing was written.', '10'],
  readonly: ['The data of this server cannot be written at the moment; nothing was changed.', '30'],
  failing: ['The disk of this server does not answer as it should; nothing was written.', '10'],
  uncertain: [
    'The database did not confirm the change, which may be kept; only a repeat with the same Idempotency-Key is safe.',
    '5',
  ],
  lost: ['The data folder or the database of this server was removed or replaced; nothing was written.', '30'],
  unreachable: ['The database server does not answer; nothing was written.', '5'],
  standby: ['The database server is a standby, which only reads; nothing was written.', '5'],
  filestorage: ['The file storage of this server does not answer as it should.', '5'],
  damaged: ['The database of this server is damaged; it has to be restored from a backup.', '60'],
}

/**
 * Returns the 503 problem for a storage error. Returns null for any other error and for an error
 * that is already a Problem.
 */
export function toUnavailableProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return null
  const trouble = storageFaultOf(error)
  if (trouble === null) return null
  const [sentence, seconds] = words[trouble]
  return new Problem('unavailable', sentence, { cause: error, headers: { 'retry-after': seconds } })
}

const aside = perOwner((_store: Services['store']) => new Set<string>())

/**
 * Starts an optional write, such as the time when a token was last used. Does not wait for the
 * write, because it must not delay a read. Drops the write while an earlier write with the same
 * `name` is running.
 */
export function writeAside(
  { store, log }: Pick<Services, 'store' | 'log'>,
  name: string,
  work: () => Promise<unknown>,
): void {
  const underWay = aside(store)
  if (underWay.has(name)) return
  underWay.add(name)
  bestEffort(work)
    // The write may fail because the database is already closed.
    .catch((error: unknown) => log.warn({ err: error }, 'An optional write beside a request failed.'))
    .finally(() => underWay.delete(name))
}

/** Runs an optional write. Ignores a storage error and throws any other error. */
export async function bestEffort(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (storageFaultOf(error) === null) throw error
  }
}
