// The generated contract, which test servers use.
import { readFileSync } from 'node:fs'

export const contract = JSON.parse(
  readFileSync(new URL('../../src/contract/document.gen.json', import.meta.url), 'utf8'),
) as Record<string, unknown>
