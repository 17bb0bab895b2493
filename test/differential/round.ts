// A round: creates equal worlds on both engines and sends the same requests to both. Compares the
// replies and process events after each request, the event feed at intervals, and every list at the
// end.
import { isDeepStrictEqual } from 'node:util'
import { startWorld, type World } from '../contract/support.ts'
import { type People, peopleOf } from '../fuzz/people.ts'
import { type Pool, poolOf } from '../fuzz/pool.ts'
import { randomOf } from '../fuzz/random.ts'
import { requestOf, type Wanted } from '../fuzz/requests.ts'
import { background, forgive, mailerOf, outboundOf, remember, served } from '../fuzz/round.ts'
import { type Engine, openImage } from '../support/engine.ts'
import { restartUnique } from '../support/given.ts'
import { fact, operationAt } from '../support/schema.ts'
import { settle } from '../support/settle.ts'
import { bodyDifference, comparable, differences } from './compare.ts'
import { deliver } from './deliver.ts'
import { giveGaplessIds } from './gapless-ids.ts'
import type { SeededRandom } from './seeded-random.ts'
import { feedAfter, listInFull, lists } from './state.ts'

export interface Difference {
  index: number
  /** Null for a difference in the stored data and not in a reply. */
  wanted: Wanted | null
  sentences: string[]
}

export interface RoundOptions {
  seed: number
  from: number
  to: number
  randomness: SeededRandom
  onAnswer(operation: string | null, status: number): void
  onDifference(found: Difference): void
}

interface Side {
  world: World
  people: People
}

const engines = ['sqlite', 'postgres'] as const satisfies readonly Engine[]
type Sides = Record<Engine, Side>

/** The number of requests between two comparisons of the event feed. */
const requestsPerFeed = 50

/**
 * Returns the index after the last request. Ends early after a difference in a write, because the
 * worlds then differ.
 */
export async function differentialRound(options: RoundOptions): Promise<number> {
  const round = new Round(options, await startBoth(options))
  try {
    return await round.run()
  } finally {
    await round.close()
  }
}

class Round {
  readonly #options: RoundOptions
  readonly #sides: Sides
  readonly #pool: Pool
  /** The id of the last compared event of the feed. */
  #lastEvent = 0
  /** The number of the last stream of random numbers. */
  #stream = 0

  constructor(options: RoundOptions, sides: Sides) {
    this.#options = options
    this.#sides = sides
    this.#pool = poolOf(sides.sqlite.world)
  }

  async run(): Promise<number> {
    const { from, to } = this.#options
    const missing = engines.flatMap((engine) => this.#sides[engine].world.missing.map((each) => `${engine}: ${each}`))
    if (this.#report(from, null, missing)) return to
    // Operations that create records are chosen four times as often, because other requests delete
    // records.
    const among = served().flatMap((id) => (fact(id).location ? [id, id, id, id] : [id]))
    for (let index = from; index < to; index++) {
      const areSame = (await this.#request(index, among)) && (await this.#between(index))
      if (!areSame) return index + 1
    }
    await this.#compareFeed(to)
    for (const id of lists) {
      const [one, other] = await this.#onBoth(({ world }) => listInFull(world, id))
      this.#report(to, null, isDeepStrictEqual(one, other) ? [] : [bodyDifference(one, other, `list ${id}`)])
    }
    return to
  }

  async close(): Promise<void> {
    for (const engine of engines) await this.#sides[engine].world.server.close()
  }

  /** Sends a request to both worlds. Returns false after a difference in a write. */
  async #request(index: number, among: readonly string[]): Promise<boolean> {
    const wanted = this.#wantedAt(index, among)
    const operation = operationAt(wanted.method, (wanted.url.split(/[?#]/)[0] ?? '').replace(/\/+$/, ''))?.id ?? null
    const [one, other] = await this.#onBoth(async ({ world }) => {
      if (operation !== null && fact(operation).public) await forgive(world, randomOf(this.#options.seed, index))
      return deliver(world.server, wanted)
    })
    const found = differences(operation, wanted, one, other)
    const [seen, others] = engines.map((engine) =>
      comparable(JSON.stringify(this.#sides[engine].world.server.seen.splice(0))),
    )
    if (seen !== others) found.push(bodyDifference(seen, others, 'events of the process'))
    this.#options.onAnswer(operation, one instanceof Error ? 0 : one.status)
    if (this.#report(index, wanted, found) && !/^(GET|HEAD)$/.test(wanted.method)) return false
    if (one instanceof Error) return true
    remember(this.#pool, wanted, operation, one)
    if (one.status === 401) await this.#onBoth(({ people }) => people.renew(wanted.who))
    return true
  }

  #wantedAt(index: number, among: readonly string[]): Wanted {
    const { world, people } = this.#sides.sqlite
    const random = randomOf(this.#options.seed, index)
    const wanted = requestOf(random, this.#pool, world.server, among, moods)
    const authorization = people.headerOf(wanted.who, random, this.#pool)
    if (authorization && !wanted.headers.some(([name]) => name === 'authorization')) wanted.headers.push(authorization)
    return wanted
  }

  /** Runs background work, and compares the feed at intervals. */
  async #between(index: number): Promise<boolean> {
    await this.#onBoth(({ world }) => background(world, randomOf(~this.#options.seed, index)))
    if (index % requestsPerFeed > 0) return true
    await this.#onBoth(({ people }) => people.renew('admin'))
    return this.#compareFeed(index)
  }

  async #compareFeed(index: number): Promise<boolean> {
    const [one, other] = await this.#onBoth(({ world }) => feedAfter(world, this.#lastEvent))
    this.#lastEvent = one.last
    return !this.#report(
      index,
      null,
      one.text === other.text ? [] : [bodyDifference(one.text, other.text, 'event feed')],
    )
  }

  #report(index: number, wanted: Wanted | null, sentences: string[]): boolean {
    if (sentences.length > 0) this.#options.onDifference({ index, wanted, sentences })
    return sentences.length > 0
  }

  /** Runs the same work on both worlds, one after the other, with the same random numbers. */
  async #onBoth<T>(work: (side: Side) => Promise<T>): Promise<[T, T]> {
    const { seed, from, randomness } = this.#options
    const stream = ++this.#stream
    const results: T[] = []
    for (const engine of engines) {
      randomness.restart(seed + from, stream)
      const side = this.#sides[engine]
      results.push(await work(side))
      await settle(side.world.server)
    }
    return results as [T, T]
  }
}

/** Uses more valid requests than the fuzzer, because refused requests hardly use the database. */
const moods = { plausible: 66, broken: 20, wild: 2, door: 2, link: 10 }

async function startBoth({ seed, from, randomness }: RoundOptions): Promise<Sides> {
  const sides: Partial<Sides> = {}
  for (const engine of engines) {
    restartUnique()
    const world = await startWorld({
      engine,
      mailer: mailerOf(),
      outbound: outboundOf(),
      config: { mailReceiver: 'sendgrid' },
      async open(image) {
        // With a single write connection, transactions run one after another, as on SQLite. A retry
        // after a conflict would draw other random numbers and repeat `.before` events.
        const store = await openImage(image, 1)
        if (engine === 'postgres') await giveGaplessIds(store)
        randomness.restart(seed + from, -1)
        return store
      },
    })
    // Jobs run one after another, because concurrent jobs end in an unpredictable order.
    world.server.work = () => world.server.app.worker.drain(1)
    randomness.restart(seed + from, -2)
    sides[engine] = { world, people: await peopleOf(world.server) }
  }
  return sides as Sides
}
