// Whether the database file is still where it was opened. A process goes on writing into a file that was removed or replaced, and nobody
// would find what it wrote.

import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

export class DatabaseFilesLostError extends Error {
  constructor(sentence: string) {
    super(sentence)
    this.name = 'PlaceLost'
  }
}

export interface FileIdentity {
  /** Looks, off the event loop. Never rejects. */
  verify(): Promise<void>
  /** The problem found by the last check, in a sentence; null once the same files are back. */
  lost(): string | null
  /** Throws PlaceLost. */
  assert(): void
}

const identityOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`

/** `paths` are those that must stay the same; `late` ones count from when they are first seen. */
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
      return code === 'ENOENT' ? `${path} was removed` : `${path} cannot be looked at (${code})`
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
