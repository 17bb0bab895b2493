// Checks that the database file is still the one that was opened. Writes to a removed or replaced
// file would succeed and be lost.

import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

export class DatabaseFilesLostError extends Error {
  constructor(sentence: string) {
    super(sentence)
    this.name = 'DatabaseFilesLostError'
  }
}

export interface FileIdentity {
  /** Checks the files off the event loop. Never rejects. */
  verify(): Promise<void>
  /**
   * Returns the problem that the last `verify` found as a sentence, or null. A later `verify`
   * clears the problem when the original files are back.
   */
  lost(): string | null
  /** Throws DatabaseFilesLostError if the last `verify` found a problem. */
  assert(): void
}

const identityOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`

/**
 * Checks that every path in `paths` stays the same file. A path in `late` may be missing at first.
 * After `verify` has seen it, it must stay the same file, too.
 */
export function createFileIdentity(paths: readonly string[], late: readonly string[]): FileIdentity {
  const known = new Map<string, string>()
  for (const path of paths) known.set(path, identityOf(statSync(path)))
  let sentence: string | null = null

  async function problemOf(path: string): Promise<string | null> {
    const before = known.get(path)
    try {
      const now = identityOf(await stat(path))
      if (before === undefined) known.set(path, now)
      return before === undefined || before === now ? null : `${path} was replaced by another one`
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (before === undefined) return null
      return code === 'ENOENT' ? `${path} was removed` : `${path} cannot be checked (${code})`
    }
  }

  return {
    async verify() {
      const problems = await Promise.all([...paths, ...late].map(problemOf))
      sentence = problems.find((each) => each !== null) ?? null
    },
    lost: () => sentence,
    assert() {
      if (sentence !== null) throw new DatabaseFilesLostError(sentence)
    },
  }
}
