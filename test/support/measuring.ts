// What measurements from a process of their own have in common: how that process is started, and how the times it took are told.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** Arguments of node that let it run a module as it is written. */
export const fromSource: readonly string[] = [
  '--import',
  pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href,
]

/** Milliseconds. */
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
