// The failover drill at full length. Prints its figures and exits with 1 if a promise is broken.
// `npm run test:failover -- <seconds>` writes for so long before and after the failover.

import { runFailoverDrill } from '../support/failover.ts'

const seconds = Number(process.argv[2] ?? 10)
const report = await runFailoverDrill({
  writers: 16,
  beforeMs: seconds * 1000,
  afterMs: seconds * 1000,
  promotionMs: 2_000,
})
console.log(JSON.stringify(report, null, 2))
const isKept =
  report.lost === 0 && report.repeated === 0 && report.withoutRetryAfter === 0 && report.isSameProcess && !report.errors['500']
process.exitCode = isKept ? 0 : 1
