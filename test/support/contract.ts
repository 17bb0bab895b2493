// The generated contract, as a test's server follows it.
import { readFileSync } from 'node:fs'

export const contract = JSON.parse(
  readFileSync(new URL('../../src/contract/document.gen.json', import.meta.url), 'utf8'),
) as Record<string, unknown>
