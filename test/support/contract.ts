// The generated contract, as the server of a test follows it.
import { readFileSync } from 'node:fs'

export const contract = JSON.parse(
  readFileSync(new URL('../../src/contract/document.gen.json', import.meta.url), 'utf8'),
) as Record<string, unknown>
