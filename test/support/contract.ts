// The generated contract, which test servers use, and the contract by which tests write requests.
import { readFileSync } from 'node:fs'

const read = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as Record<string, unknown>

export const contract = read('src/contract/document.gen.json')

/** The contract of the last release (codegen/compat). */
export const releasedContract = (): Record<string, unknown> => read('test/contract/released.json')

/** The contract of a test's clients: with ACCORD_TEST_CLIENTS=released that of the last release. */
export const clientContract = process.env.ACCORD_TEST_CLIENTS === 'released' ? releasedContract() : contract
