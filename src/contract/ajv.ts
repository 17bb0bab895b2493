// Creates Ajv instances for requests and replies: JSON Schema 2020-12 with the contract's formats
// (input/formats.ts). formats.ts does not import Ajv, so that modules can parse dates without
// loading Ajv.
import type { Ajv, Options, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { addFormats } from './input/formats.ts'

const commonOptions = {
  strict: false,
  validateSchema: false,
  allErrors: true,
  // Ajv's code optimization takes a third of the compile time and has no measurable benefit.
  code: { optimize: false },
} as const

const inputOptions = {
  useDefaults: true,
  verbose: true,
  // Ajv writes no error messages, because validation-errors.ts writes the error sentences.
  messages: false,
} as const

/**
 * Returns an Ajv 2020-12 instance with the contract's formats. The return type is the draft-07
 * class, because the types of openapi-backend require it. Both classes have the same interface.
 */
export const newAjv = (options: Options = {}): Ajv =>
  addFormats(new Ajv2020({ ...commonOptions, ...options }) as unknown as Ajv)

/** Returns an Ajv instance for request bodies and parameters. */
export const newInputAjv = (options: Options = {}): Ajv => newAjv({ ...inputOptions, ...options })

let inputAjv: Ajv | undefined

/** Returns a validator for a value from outside a request, such as a row of an import. */
export function compileInput(schema: object): ValidateFunction {
  inputAjv ??= newInputAjv()
  const validate = inputAjv.compile(schema)
  // Ajv caches every compiled schema. Without this call, the validator could never be
  // garbage-collected.
  inputAjv.removeSchema(schema)
  return validate
}
