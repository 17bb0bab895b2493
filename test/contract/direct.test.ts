// The short way through a request's checks (src/contract/direct.ts) is held to openapi-backend's own: whatever is sent, both ask the
// pipeline the same in the same order, give the handler the same input, or refuse the call in the same words.
import { inspect } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Backend, type Call, createBackend, type Pipeline } from '../../src/contract/backend.ts'
import { Problem } from '../../src/contract/output/problems.ts'
import type { OperationId } from '../../src/contract/types.ts'
import { randomOf } from '../fuzz/random.ts'
import { contract } from '../support/app.ts'
import { facts } from '../support/schema.ts'
import { callOf, type Sent, sentTo } from './direct.calls.ts'

const seed = 6
const callsEach = process.env.ACCORD_TEST_FULL === '1' ? 1_500 : 64
const handled = facts.filter(([, { servedBy }]) => servedBy === 'handler').map(([id]) => id as OperationId)

/** What the pipeline was asked, and how it ended. */
interface Outcome {
  steps: [step: string, ...rest: unknown[]][]
  status: number
  end: unknown
}

const trials = new WeakMap<Call, { sent: Sent; steps: Outcome['steps'] }>()

function trialOf(call: Call): { sent: Sent; steps: Outcome['steps'] } {
  const trial = trials.get(call)
  if (!trial) throw new Error('This call is none of the test.')
  return trial
}

/** Notes what it is asked, and throws where the call is to fail. */
function step(call: Call, name: Sent['fate'], problem: Problem, ...rest: unknown[]): void {
  const { sent, steps } = trialOf(call)
  steps.push([name, ...rest])
  if (sent.fate === name) throw problem
}

const stub: Pipeline = {
  authenticate: async (call) => step(call, 'authenticate', new Problem('unauthenticated', 'No such token.')),
  authorizePublic: async (call) => step(call, 'welcome', new Problem('rate_limited')),
  cachedResponse: () => undefined,
  authorize: (call) => step(call, 'authorize', new Problem('forbidden', undefined, { required: 'leads' })),
  async receive(call, _stream, schema) {
    step(call, 'receive', new Problem('payload_too_large'), Object.keys(schema))
    const { form } = trialOf(call).sent
    if (!form) throw new Error('This call has no stream.')
    return structuredClone(form)
  },
  assertRecordVisible: async (call, params) => step(call, 'locate', new Problem('version_mismatch'), { ...params }),
  async examine(call, input, refused) {
    trialOf(call).steps.push(['examine', structuredClone(input), refused])
    return {}
  },
  async handle(call, input) {
    step(call, 'handle', new Problem('state_conflict'), input)
    return input
  },
  finish: async () => undefined,
}

async function outcome(sent: Sent, way: (call: Call) => Promise<unknown>): Promise<Outcome> {
  const call: Call = callOf(sent)
  const trial = { sent, steps: [] }
  trials.set(call, trial)
  try {
    return { ...trial, status: 200, end: await way(call) }
  } catch (error) {
    if (!(error instanceof Problem)) return { ...trial, status: 500, end: String(error) }
    const { status, code, message, more } = error
    return { ...trial, status, end: { code, message, errors: more.errors, required: more.required } }
  }
}

/** All of it as a text: keys in their order, what has no prototype, symbols, -0 and undefined. */
const textOf = (value: unknown): string =>
  inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: 120 })

let strict: Backend
let lenient: Backend
beforeAll(async () => {
  strict = await createBackend(contract, stub, { zone: 'Europe/London', strict: true })
  lenient = await createBackend(contract, stub, { zone: 'America/New_York', strict: false })
})

async function both(sent: Sent): Promise<{ short: Outcome; long: Outcome }> {
  const backend = sent.isStrict ? strict : lenient
  const short = await outcome(sent, (call) => backend.handle(call))
  return { short, long: await outcome(sent, (call) => backend.handleThrough(call)) }
}

describe('the short way and the long one', () => {
  const byStatus = new Map<number, number>()
  const reached = new Set<string>()

  it.each(handled)('answer the same to whatever is sent to %s', async (id) => {
    const at = handled.indexOf(id)
    for (let index = 0; index < callsEach; index++) {
      const sent = sentTo(randomOf(seed + at, index), id)
      const { short, long } = await both(sent)
      const [got, wanted] = [textOf(short), textOf(long)]
      if (got !== wanted) expect({ sent: textOf(sent).slice(0, 4_000), got }).toEqual({ sent: '', got: wanted })
      byStatus.set(short.status, (byStatus.get(short.status) ?? 0) + 1)
      if (short.steps.at(-1)?.[0] === 'handle') reached.add(id)
    }
  })

  it('were both tried in earnest', () => {
    expect(handled.filter((id) => !reached.has(id))).toEqual([])
    const few = [200, 400, 401, 403, 404, 409, 412, 413, 415, 422, 429].filter((each) => (byStatus.get(each) ?? 0) < 5)
    expect([few, [...byStatus.keys()].filter((each) => each >= 500)]).toEqual([[], []])
    expect(byStatus.get(200)).toBeGreaterThan((handled.length * callsEach) / 5)
    expect(byStatus.get(422)).toBeGreaterThan((handled.length * callsEach) / 20)
  })
})
