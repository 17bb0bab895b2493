// Cells of the authorization matrix. A cell compares an aspect of a reply with its required value,
// which is derived from the contract and matrix.scope.ts.
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { keptBytes } from '../support/pictures.ts'
import { short, stored, type World } from './support.ts'

/**
 * Whether all cells are checked. The short run checks only some variants of rules that many
 * operations share.
 */
export const isFull = process.env.ACCORD_TEST_FULL === '1'

/** Records the cells of one run of the matrix. */
export class Cells {
  readonly #names = new Set<string>()
  #count = 0
  #wrongCount = 0
  #wrong: string[] = []

  /** Checks a cell and records a difference. */
  check(name: string, found: unknown, wanted: unknown): void {
    this.#count++
    this.#names.add(name)
    if (isDeepStrictEqual(found, wanted)) return
    this.#wrongCount++
    this.#wrong.push(`${name}: ${short(found)} instead of ${short(wanted)}`)
  }

  /** Ends a test. Fails if one of its cells was wrong. */
  settle(): void {
    const found = this.#wrong
    this.#wrong = []
    expect(found).toEqual([])
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  summary(): string {
    return `authorization matrix: ${this.#count} cells, ${this.#wrongCount} wrong`
  }
}

/** The stored data at the last `keep` of each world. */
const baselines = new WeakMap<World, string>()

/** Stores the state of the world, to compare it after refused requests. */
export async function keep(world: World): Promise<void> {
  world.server.events()
  await world.server.keep()
  baselines.set(world, await stored(world.server.store))
}

/**
 * Returns the number of rows changed since the connection was opened, including rolled-back
 * changes.
 */
async function changes({ server: { store } }: World): Promise<number> {
  const { rows } = await sql<{ n: number }>`select total_changes() as n`.execute(store.db)
  return rows[0]?.n ?? 0
}

/** Checks that requests change no rows and no files, and fire no events. */
export async function untouched(cells: Cells, name: string, world: World, work: () => Promise<void>): Promise<void> {
  const [before, files] = [await changes(world), await keptBytes(world.server)]
  world.server.events()
  await work()
  const found = world.server.events()
  // Usually no row has changed, and the slow comparison is not needed.
  if (
    (await changes(world)) !== before &&
    baselines.has(world) &&
    (await stored(world.server.store)) !== baselines.get(world)
  )
    found.push('wrote to the database')
  if (!isDeepStrictEqual(await keptBytes(world.server), files)) found.push('kept bytes')
  cells.check(`${name} does nothing`, found, [])
  if (found.length > 0) await world.server.rewind()
}

export interface TokenLike {
  userId?: number
  abilities?: readonly string[]
  expiresAt?: string | null
  allowedIps?: readonly string[]
  /** The time of creation and last use. The default is now. */
  usedAt?: string
}

/** Inserts a token directly. By default it was used just now, so that its use writes nothing. */
export async function token({ server: { store } }: World, about: TokenLike = {}): Promise<string> {
  const { userId = 1, abilities = ['*'], expiresAt = null, allowedIps = [], usedAt = start } = about
  const issued = await issueToken(
    store.db,
    { userId, name: 'matrix', kind: 'personal', abilities, expiresAt, allowedIps },
    usedAt,
  )
  await store.db.updateTable('tokens').set({ last_used_at: usedAt }).where('id', '=', issued.id).execute()
  return issued.text
}
