// What a caller is told when the data cannot be read or written at the moment (DOMAIN 4.2, 503): a reason to come again, not a
// defect. And what is written for the record only: it must not keep anybody from reading.
import { type Trouble, troubleOf } from '../../db/trouble.ts'
import { Problem } from './errors.ts'

const words: Readonly<Record<Trouble, readonly [sentence: string, seconds: string]>> = {
  busy: ['The database is busy.', '1'],
  full: ['The disk of this server is full; nothing was written.', '10'],
  readonly: ['The data of this server cannot be written at the moment; nothing was changed.', '30'],
  failing: ['The disk of this server does not answer as it should; nothing was written.', '10'],
  damaged: ['The database of this server is damaged; it has to be restored from a backup.', '60'],
}

/** The 503 for an error of the place where the data is; null for any other, and for a problem that says itself what it is. */
export function asUnavailable(error: unknown): Problem | null {
  if (error instanceof Problem) return null
  const trouble = troubleOf(error)
  if (trouble === null) return null
  const [sentence, seconds] = words[trouble]
  return new Problem('unavailable', sentence, { cause: error, headers: { 'retry-after': seconds } })
}

/** Writes what nobody waits for, such as when a token was used last. Where that cannot be written, all goes on without. */
export async function ifItCan(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (troubleOf(error) === null) throw error
  }
}
