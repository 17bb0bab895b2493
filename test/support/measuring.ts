// Helpers for measurements in a separate process: starting the process, and reporting its times.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** The arguments of node to run a TypeScript module from source. */
export const fromSource: readonly string[] = [
  '--import',
  pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href,
]

/** The number of measurements and their percentiles in milliseconds. */
export interface Times {
  count: number
  p50: number
  p99: number
  max: number
}

export function timesOf(taken: readonly number[]): Times {
  const sorted = [...taken].sort((one, other) => one - other)
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}
