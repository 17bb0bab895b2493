// Runs the rounds of a differential run and reports the result.
import { facts } from '../support/schema.ts'
import { type Difference, differentialRound } from './round.ts'
import { seedRandomness } from './seeded-random.ts'

export interface DifferentialOptions {
  seed: number
  requests: number
  from?: number
  onDifference?(text: string): void
  onProgress?(line: string): void
}

export interface DifferentialResult {
  differences: number
  /** The number of requests by status. 0 means that there was no response. */
  byStatus: ReadonlyMap<number, number>
  /** The operations that were requested, and the operations that succeeded. */
  requested: ReadonlySet<string>
  succeeded: ReadonlySet<string>
  summary: string
}

/**
 * The number of requests per round. To reproduce a difference, start from the first request of its
 * round.
 */
const perRound = 4_000

export async function differential(options: DifferentialOptions): Promise<DifferentialResult> {
  const { seed, requests, from = 0, onDifference, onProgress } = options
  const byStatus = new Map<number, number>()
  const [requested, succeeded] = [new Set<string>(), new Set<string>()]
  let [differences, index] = [0, from]
  // The stopwatch of the process stands still during a round.
  const began = Date.now()
  const rate = (): string => `${Math.round(((index - from) * 1_000) / (Date.now() - began))} requests/s`
  const onAnswer = (operation: string | null, status: number): void => {
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
    if (operation === null) return
    requested.add(operation)
    if (status > 0 && status < 400) succeeded.add(operation)
  }
  const randomness = seedRandomness()
  try {
    while (index < from + requests) {
      const start = index
      const to = Math.min(from + requests, start + perRound)
      const note = (found: Difference): void => {
        differences++
        onDifference?.(told(seed, start, found))
      }
      index = await differentialRound({ seed, from: start, to, randomness, onAnswer, onDifference: note })
      onProgress?.(`${index - from} requests, ${differences} differences, ${rate()}`)
    }
  } finally {
    randomness.end()
  }
  const summary = [
    `seed ${seed}: ${requests} requests to ${requested.size} of ${facts.length} operations on both engines, ${rate()}`,
    `by status: ${[...byStatus]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => `${status} ${count}`)
      .join(', ')}`,
    `never succeeded: ${facts.flatMap(([id]) => (succeeded.has(id) ? [] : [id])).join(', ') || 'none'}`,
    `differences: ${differences}`,
  ].join('\n')
  return { differences, byStatus, requested, succeeded, summary }
}

function told(seed: number, start: number, { index, wanted, sentences }: Difference): string {
  const again = `npm run test:differential -- --seed ${seed} --from ${start} --requests ${index - start + 1}`
  const request = wanted && [
    `${wanted.operation ?? 'no operation'} as ${wanted.who}: ${wanted.method} ${wanted.url.slice(0, 1_000)}`,
    ...wanted.headers
      .filter(([name]) => name !== 'authorization')
      .map(([name, value]) => `${name}: ${value.slice(0, 200)}`),
    wanted.bytes?.toString().slice(0, 1_500) ?? '',
  ]
  return [`#${index} of seed ${seed} (${again})`, ...(request ?? ['in the state']), ...sentences].join('\n')
}
