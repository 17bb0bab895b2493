// `kill -9` during writes at random moments: acknowledged writes exist unchanged, there are no
// partial writes, and a write without a reply happened once or not at all. ACCORD_TEST_FULL=1 runs
// a hundred rounds.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { audit, nothing, resolve, shownOtherwise } from './audit.ts'
import { seeded } from './chance.ts'
import { type Load, prepare } from './load.ts'
import { environment, isFull } from './serving.ts'

const rounds = isFull ? 100 : 2
/** The number of concurrent writers, alternating. With many writers, group commits are large. */
const writers = [8, 64]
const seed = 20_261_121
/** The server is killed after at most this many replies, immediately or some milliseconds later. */
const maxAnswers = 60
const maxMs = 25
const fileBytes = 64 * 1024

let folder: string
let serving: Serving | undefined
beforeEach(async () => {
  folder = await workingFolder()
})
afterEach(async () => {
  await serving?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('a server that is killed while it writes', () => {
  it(
    'loses nothing it has acknowledged, leaves nothing by half, and starts again without a hand',
    async () => {
      const dataDir = join(folder, 'data')
      serving = await accordServing(folder, 'serve', environment)
      const { door, load } = await prepare(serving.url, environment.ACCORD_ADMIN_PASSWORD)
      const random = seeded(seed)
      const totals = { lost: 0, half: 0, unanswered: 0, slowestStart: 0 }

      for (let round = 1; round <= rounds; round++) {
        const before = { acknowledged: load.acknowledged, leads: load.leads.length }
        const answers = 1 + Math.floor(random() * maxAnswers)
        const writing = load.write(door, writers[round % writers.length] ?? 0, random, fileBytes)
        await load.until(before.acknowledged + answers)
        // Every second kill is immediate, so that the last acknowledged write gets no extra time to
        // reach the disk.
        const wait = random() * maxMs
        if (round % 2 === 1) await pause(wait)
        await serving.stop('SIGKILL')
        await writing.done
        totals.unanswered += load.pending.size

        const since = performance.now()
        serving = await accordServing(folder, 'serve', environment)
        totals.slowestStart = Math.max(totals.slowestStart, performance.now() - since)
        door.url = serving.url
        const unresolved = await resolve(door, load)
        const { lost, half, corrupt } = await audit(dataDir, load)
        const shown = await shownOtherwise(door, dataDir, touched(load, before.leads))
        totals.lost += lost.length
        totals.half += half.length
        const about = `round ${round} of seed ${seed}`
        expect({ lost, half, corrupt }, about).toEqual(nothing)
        expect({ unresolved, shown, strange: load.strange }, about).toEqual({ unresolved: [], shown: [], strange: [] })
        expect(serving.said.stderr, about).toBe('')
        if (round % 10 === 0) console.log(`kill -9: ${round} of ${rounds} rounds, ${load.acknowledged} acknowledged`)
      }
      console.log(
        `kill -9: rounds ${rounds}, acknowledged ${load.acknowledged}, unanswered ${totals.unanswered}, lost ${totals.lost}, ` +
          `half-written ${totals.half}, integrity ok ${rounds} of ${rounds}, slowest start ${Math.round(totals.slowestStart)} ms, seed ${seed}`,
      )
      expect(load.acknowledged).toBeGreaterThanOrEqual(rounds)
      expect(totals.unanswered).toBeGreaterThan(0)
    },
    isFull ? 7_200_000 : 180_000,
  )
})

/** Returns the leads of this round, and the last ten of earlier rounds. */
const touched = ({ leads }: Load, from: number) => leads.slice(Math.max(0, from - 10))
