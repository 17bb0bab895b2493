// Preloaded into a process to shift its system clock. The clock starts ACCORD_TEST_CLOCK_LEAD_MS
// before the end of a minute, or ACCORD_TEST_CLOCK_AHEAD_MS ahead of the real time. SIGUSR2 shifts
// it by the milliseconds in the file ACCORD_TEST_CLOCK_FILE.
import { readFileSync } from 'node:fs'

const RealDate = Date
const leadMs = Number(process.env.ACCORD_TEST_CLOCK_LEAD_MS ?? 0)
const aheadMs = Number(process.env.ACCORD_TEST_CLOCK_AHEAD_MS ?? 0)
let shiftMs = leadMs > 0 ? 60_000 - (RealDate.now() % 60_000) - leadMs : aheadMs
const beginMs = shiftMs
const now = () => RealDate.now() + shiftMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, made) => Reflect.construct(target, args.length > 0 ? args : [now()], made),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})
process.on('SIGUSR2', () => {
  shiftMs = beginMs + Number(readFileSync(process.env.ACCORD_TEST_CLOCK_FILE ?? '', 'utf8'))
})
