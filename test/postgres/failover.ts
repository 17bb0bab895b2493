// Runs a long failover drill. Prints its results, and exits with 1 if a guarantee is violated. `npm
// run test:failover -- <seconds>` sets the time of writes before and after the failover.

import { openFailoverScene } from '../support/failover.ts'

const seconds = Number(process.argv[2] ?? 10)
const scene = await openFailoverScene()
try {
  const report = await scene.drill({
    ...{ writers: 16, promotionMs: 2_000 },
    ...{ beforeMs: seconds * 1000, afterMs: seconds * 1000 },
  })
  console.log(JSON.stringify(report, null, 2))
  const { lost, repeated, withoutRetryAfter, isSameProcess, errors } = report
  const isKept = lost === 0 && repeated === 0 && withoutRetryAfter === 0 && isSameProcess
  process.exitCode = isKept && Object.keys(errors).every((status) => status === '503') ? 0 : 1
} finally {
  await scene.close()
}
