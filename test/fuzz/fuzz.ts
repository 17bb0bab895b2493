// Runs the rounds of a fuzz run and reports the requests by status and operation, the slowest
// requests, and a curl command for each finding.
import { facts } from '../support/schema.ts'
import type { Wanted } from './requests.ts'
import { type Answered, type Finding, fuzzRound, served } from './round.ts'

export interface FuzzOptions {
  seed: number
  requests: number
  from?: number
  only?: readonly string[]
  onFinding?(text: string): void
  onProgress?(line: string): void
}

export interface FuzzResult {
  findings: number
  /** The number of requests by status. 0 means that there was no reply. */
  byStatus: ReadonlyMap<number, number>
  byOperation: ReadonlyMap<string, number>
  summary: string
}

/**
 * The number of requests per round. To reproduce a finding, start from the first request of its
 * round.
 */
export const perRound = 4_000

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const { seed, requests, from = 0, only = [], onFinding, onProgress } = options
  const byStatus = new Map<number, number>()
  const byOperation = new Map<string, number>()
  const succeeded = new Set<string>()
  const slowest: Answered[] = []
  let [findings, index] = [0, from]
  const began = performance.now()
  const onAnswer = (answered: Answered): void => {
    const { operation, status } = answered
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
    if (operation !== null) byOperation.set(operation, (byOperation.get(operation) ?? 0) + 1)
    if (operation !== null && status > 0 && status < 400) succeeded.add(operation)
    if (answered.wanted.transport === 'abused') return
    slowest.push(answered)
    if (slowest.length > 1_000) slowest.sort((one, other) => other.ms - one.ms).splice(10)
  }
  const note = (finding: Finding, round: number): void => {
    findings++
    onFinding?.(told(seed, round, finding))
  }
  const crash = (cause: unknown): void =>
    note(
      {
        index,
        wanted: null,
        sentences: ['An error that no code caught.'],
        excerpt: String((cause as Error)?.stack ?? cause),
      },
      index,
    )
  process.on('unhandledRejection', crash)
  process.on('uncaughtException', crash)
  try {
    while (index < from + requests) {
      const start = index
      const to = Math.min(from + requests, (Math.floor(start / perRound) + 1) * perRound)
      await fuzzRound({ seed, from: start, to, only, onAnswer, onFinding: (finding) => note(finding, start) })
      index = to
      onProgress?.(`${index - from} requests, ${findings} findings, ${rate(index - from, began)}`)
    }
  } finally {
    process.off('unhandledRejection', crash)
    process.off('uncaughtException', crash)
  }
  slowest.sort((one, other) => other.ms - one.ms).splice(10)
  const counts = (only.length > 0 ? only : served())
    .map((id) => [id, byOperation.get(id) ?? 0] as const)
    .sort(([, one], [, other]) => one - other)
  const summary = [
    `seed ${seed}: ${requests} requests to ${counts.filter(([, count]) => count > 0).length} of ${facts.length} operations, ${rate(requests, began)}`,
    `by status: ${[...byStatus]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => `${status || 'closed'} ${count}`)
      .join(', ')}`,
    `by operation: from ${counts[0]?.join(' ')} to ${counts.at(-1)?.join(' ')}; ${succeeded.size} of them succeeded`,
    `never succeeded: ${
      counts
        .filter(([id]) => !succeeded.has(id))
        .map(([id]) => id)
        .join(', ') || 'none'
    }`,
    `slowest: ${slowest.map(({ operation, wanted, ms, index }) => `${operation ?? wanted.url.slice(0, 40)} ${Math.round(ms)} ms (#${index})`).join(', ')}`,
    `findings: ${findings}`,
  ].join('\n')
  return { findings, byStatus, byOperation, summary }
}

const rate = (count: number, since: number): string =>
  `${Math.round((count * 1_000) / (performance.now() - since))} requests/s`

function told(seed: number, round: number, { index, wanted, sentences, excerpt }: Finding): string {
  const again = `npm run test:fuzz -- --seed ${seed} --from ${round} --requests ${index - round + 1}`
  return [
    `#${index} of seed ${seed} (${again})`,
    ...(wanted ? [curl(wanted)] : ['in the background']),
    ...sentences,
    excerpt,
  ]
    .join('\n')
    .slice(0, 6_000)
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Returns the request as a shell command, with binary bytes in base64. */
function curl({ operation, who, transport, method, url, headers, bytes }: Wanted): string {
  const text = bytes?.toString() ?? ''
  const isText = bytes === undefined || Buffer.from(text).equals(bytes)
  const data =
    bytes === undefined
      ? ''
      : isText
        ? ` --data-binary ${quoted(text.slice(0, 3_000))}`
        : ` # body in base64: ${bytes.toString('base64').slice(0, 3_000)}`
  const lines = headers
    .filter(([name]) => name !== 'authorization')
    .map(([name, value]) => ` -H ${quoted(`${name}: ${value.slice(0, 300)}`)}`)
  return `${operation ?? 'no operation'} as ${who} by ${transport}: curl -X ${method} ${quoted(url.slice(0, 1_000))}${lines.join('')}${data}`
}
