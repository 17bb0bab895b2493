// The failover drill in its short form. `npm run test:failover` is the long one.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FailoverScene, openFailoverScene } from '../support/failover.ts'

let scene: FailoverScene
beforeAll(async () => {
  scene = await openFailoverScene()
}, 300_000)
afterAll(() => scene?.close())

it('a failover to the synchronous standby loses no acknowledged write and needs no restart', async () => {
  const report = await scene.drill({ writers: 4, beforeMs: 1_000, afterMs: 1_000, promotionMs: 500 })
  expect(report).toMatchObject({ lost: 0, repeated: 0, withoutRetryAfter: 0, isSameProcess: true })
  expect(report.acknowledgedBeforeKill).toBeGreaterThan(0)
  expect(report.acknowledged).toBeGreaterThan(report.acknowledgedBeforeKill)
  // No connection of a client is cut, and nothing other than 503 is answered.
  expect(Object.keys(report.errors).filter((status) => status !== '503')).toEqual([])
  expect(report.readiness[0]).toBe('200 primary')
  expect(report.readiness.at(-1)).toBe('200 primary')
}, 120_000)
