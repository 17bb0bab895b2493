// Ajv for requests and replies: the dialect of the contract, with its formats. It is not in
// formats.ts, because a module that only reads dates need not load Ajv.
import type { Ajv, Options, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { addFormats } from './input/formats.ts'

const commonOptions = {
  strict: false,
  validateSchema: false,
  allErrors: true,
  // Takes a third of the time of compiling, with no measurable gain.
  code: { optimize: false },
} as const

const inputOptions = {
  useDefaults: true,
  verbose: true,
  // validation-errors.ts writes the sentences.
  messages: false,
} as const

/**
 * Typed as Ajv's draft-07 class, the only one that the types of openapi-backend know; both share
 * one implementation.
 */
export const newAjv = (options: Options = {}): Ajv =>
  addFormats(new Ajv2020({ ...commonOptions, ...options }) as unknown as Ajv)

/** For request bodies and parameters. */
export const newInputAjv = (options: Options = {}): Ajv => newAjv({ ...inputOptions, ...options })

let inputAjv: Ajv | undefined

/**
 * A validator for values that come from elsewhere than a request, such as the rows of an import.
 */
export function compileInput(schema: object): ValidateFunction {
  inputAjv ??= newInputAjv()
  const validate = inputAjv.compile(schema)
  // The function lives as long as its owner; the shared instance must not keep it longer.
  inputAjv.removeSchema(schema)
  return validate
}
