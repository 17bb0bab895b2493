// A full disk: a small file system that the test fills at a random moment while the server writes.
// Only writes get 503, no acknowledged write is lost, and the server recovers when there is space.
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'
import { audit, nothing } from './audit.ts'
import { seeded } from './chance.ts'
import { call, type Door, isShed, type Load, patiently, prepare } from './load.ts'
import { environment, isFull } from './serving.ts'

const rounds = isFull ? 20 : 1
const writers = 8
const seed = 20_261_121
const maxAnswers = 40
const fileBytes = 96 * 1024
/** The number of refused writes after which space is freed. */
const refusals = 25

const folder = useNewFolder('disk')
let dataDir: string
let isMounted = false
let serving: Serving | undefined
beforeEach(() => {
  dataDir = join(folder, 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=96m,mode=700', 'tmpfs', dataDir]).status === 0
})
afterEach(async () => {
  await serving?.stop()
  if (isMounted) spawnSync('umount', [dataDir])
})

/** Fills the disk. Returns a function that frees the space. */
function fill(): () => void {
  const path = join(dataDir, 'ballast')
  const handle = openSync(path, 'w')
  for (let size = 1024 * 1024; size >= 512; ) {
    try {
      writeSync(handle, Buffer.alloc(size, 1))
    } catch {
      size /= 2
    }
  }
  return () => {
    closeSync(handle)
    rmSync(path)
  }
}

/** Reads a list, a record, a file and a search in a loop. Returns the replies that were not 200. */
async function read(door: Door, load: Load, until: () => boolean): Promise<{ count: number; failed: string[] }> {
  const [lead, file] = [load.leads.find(({ isDeleted }) => !isDeleted), load.files[0]]
  const title = lead?.title.split(' ')[0]
  const paths = ['/leads', `/leads/${lead?.id}`, `/files/${file?.id}/download`, `/search?q=${title}`, '/leads/export']
  const failed: string[] = []
  let count = 0
  while (!until()) {
    for (const path of paths) {
      const answer = await call(door, 'GET', path)
      if (isShed(answer)) continue
      const { status, body } = answer
      count++
      if (status !== 200 && !(status === 404 && lead?.isDeleted))
        failed.push(`${path}: ${status} ${JSON.stringify(body)}`)
    }
  }
  return { count, failed }
}

describe('a disk that is full', () => {
  it(
    'is answered with 503 and nothing else, loses nothing, and needs no hand once there is room again',
    async (context) => {
      if (!isMounted)
        return context.skip('SKIPPED: a full disk needs the right to mount a file system. Run this test as root.')
      await accord(folder, ['install'], environment)
      serving = await accordServing(folder, 'serve', environment)
      const { door, load } = await prepare(serving.url, environment.ACCORD_ADMIN_PASSWORD)
      const random = seeded(seed)
      const back: number[] = []
      const counts = { refused: 0, reads: 0, tried: 0 }

      for (let round = 1; round <= rounds; round++) {
        const before = { acknowledged: load.acknowledged, refused: load.refusals }
        const wanted = 5 + Math.floor(random() * maxAnswers)
        const writing = load.write(door, writers, random, fileBytes)
        const done = (count: number) => load.acknowledged - before.acknowledged >= count
        const has = (what: string) =>
          what === 'both' && load.files.length > 0 && load.leads.some(({ isDeleted }) => !isDeleted)
        await expect.poll(() => done(wanted) && has('both'), { interval: 1, timeout: 300_000 }).toBe(true)

        const free = fill()
        const isEnough = () => load.refusals - before.refused >= refusals
        const reading = read(door, load, isEnough)
        await expect.poll(isEnough, { interval: 1, timeout: 300_000 }).toBe(true)
        const { count, failed } = await reading
        free()
        const since = performance.now()
        const lastly = load.acknowledged
        await expect.poll(() => load.acknowledged > lastly, { interval: 1, timeout: 300_000 }).toBe(true)
        back.push(performance.now() - since)
        await expect.poll(() => load.acknowledged >= lastly + writers, { interval: 1, timeout: 300_000 }).toBe(true)
        writing.stop()
        await writing.done
        counts.refused += load.refusals - before.refused
        counts.reads += count

        // A refused write succeeds when it is repeated with the same key.
        for (const what of load.again.splice(0).slice(-5)) {
          load.settle(what, await patiently(() => load.send(door, what)))
          counts.tried++
        }
        const about = `round ${round} of seed ${seed}`
        expect(failed.slice(0, 5), about).toEqual([])
        expect({ strange: load.strange.slice(0, 5), pending: [...load.pending] }, about).toEqual({
          strange: [],
          pending: [],
        })
        expect(await audit(dataDir, load), about).toEqual(nothing)
        expect(
          logged(serving).filter(
            ({ level, err }) => level >= 60 || /rollback|no transaction/i.test(err?.message ?? ''),
          ),
        ).toEqual([])
        expect(serving.said.stderr, about).toBe('')
        if (round % 5 === 0) console.log(`disk full: ${round} of ${rounds} rounds, ${load.acknowledged} acknowledged`)
      }
      expect([...load.reasons]).toContain('The disk of this server is full; nothing was written.')
      const ms = back.map(Math.round).sort((one, other) => one - other)
      console.log(
        `disk full: rounds ${rounds}, acknowledged ${load.acknowledged}, refused with 503 ${counts.refused}, lost 0, half-written 0, ` +
          `integrity ok ${rounds} of ${rounds}, reads meanwhile ${counts.reads} of which failed 0, taken again with the same key ${counts.tried}, ` +
          `back without restart after ${ms[Math.floor(ms.length / 2)]} ms (median), ${ms.at(-1)} ms (longest), seed ${seed}`,
      )
      expect((await serving.stop()).code).toBe(0)
      serving = undefined
    },
    isFull ? 3_600_000 : 180_000,
  )
})

/** Returns the lines of the log. */
const logged = ({ said }: Serving): { level: number; msg: string; err?: { message?: string } }[] =>
  said.stdout
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line))
