// Runs a short failover drill. `npm run test:failover` runs the long drill.
import { afterAll, beforeAll, expect } from 'vitest'
import { type FailoverScene, openFailoverScene } from '../support/failover.ts'
import { needing } from '../support/programs.ts'

let scene: FailoverScene
beforeAll(async () => {
  scene = await openFailoverScene()
}, 300_000)
afterAll(() => scene?.close())

needing('pg_basebackup').it(
  'a failover to the synchronous standby loses no acknowledged write and needs no restart',
  async () => {
    const report = await scene.drill({ writers: 4, beforeMs: 1_000, afterMs: 1_000, promotionMs: 500 })
    expect(report).toMatchObject({ lost: 0, repeated: 0, withoutRetryAfter: 0, isSameProcess: true })
    expect(report.acknowledgedBeforeKill).toBeGreaterThan(0)
    expect(report.acknowledged).toBeGreaterThan(report.acknowledgedBeforeKill)
    // Connections of clients are not cut, and 503 is the only error.
    expect(Object.keys(report.errors).filter((status) => status !== '503')).toEqual([])
    expect(report.readiness[0]).toBe('200 primary')
    expect(report.readiness.at(-1)).toBe('200 primary')
  },
  120_000,
)
