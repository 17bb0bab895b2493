// The validator that requests and replies are checked by: of the contract's dialect, with its formats. Not in formats.ts, because who
// only reads a date need not load a validator.
import type { Ajv, Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { addFormats } from './input/formats.ts'

const common = {
  strict: false,
  validateSchema: false,
  allErrors: true,
  // Takes a third of the time of compiling, and what is gained by it cannot be measured.
  code: { optimize: false },
} as const

/** As Ajv's draft-07 class, which is all that the types of openapi-backend know; both share one implementation. */
export const newAjv = (options: Options = {}): Ajv =>
  addFormats(new Ajv2020({ ...common, ...options }) as unknown as Ajv)
