// Cells of the authorization matrix: each compares one aspect of a reply with its required value.
// The required values come from the contract and from matrix.scope.ts (DOMAIN 7), never from the
// server's behavior.
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { keptBytes } from '../support/pictures.ts'
import { short, stored, type World } from './support.ts'

/**
 * Every cell. Where many operations share a rule, the daily run checks only some of its variants.
 */
export const isFull = process.env.ACCORD_TEST_FULL === '1'

/** Records the cells of one run of the matrix. */
export class Cells {
  readonly #names = new Set<string>()
  #count = 0
  #wrongCount = 0
  #wrong: string[] = []

  /** One cell: the answer found, and the answer that the contract demands. */
  check(name: string, found: unknown, wanted: unknown): void {
    this.#count++
    this.#names.add(name)
    if (isDeepStrictEqual(found, wanted)) return
    this.#wrongCount++
    this.#wrong.push(`${name}: ${short(found)} instead of ${short(wanted)}`)
  }

  /** Ends a test, which fails when one of its cells was wrong. */
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

/**
 * The stored state that a refused request must leave as it is, by the world that `keep` was called
 * for.
 */
const baselines = new WeakMap<World, string>()

/** Keeps the state of the world, to compare with after a refused request. */
export async function keep(world: World): Promise<void> {
  world.server.events()
  await world.server.keep()
  baselines.set(world, await stored(world.server.store))
}

/** Rows changed since the connection was opened, rolled-back transactions included. */
async function changes({ server: { store } }: World): Promise<number> {
  const { rows } = await sql<{ n: number }>`select total_changes() as n`.execute(store.db)
  return rows[0]?.n ?? 0
}

/**
 * A cell for requests that must change nothing: no byte of the database or of the files, no event.
 */
export async function untouched(cells: Cells, name: string, world: World, work: () => Promise<void>): Promise<void> {
  const [before, files] = [await changes(world), await keptBytes(world.server)]
  world.server.events()
  await work()
  const found = world.server.events()
  // Without a changed row, which is the usual case, no comparison is needed.
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
  /** When it was created and last used; now by default. */
  usedAt?: string
}

/**
 * A token inserted straight into the table, by default used just now, so that using it writes
 * nothing.
 */
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
