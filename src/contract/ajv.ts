// Ajv for requests and replies: JSON Schema 2020-12 with the contract's formats. formats.ts does
// not import Ajv, so a module that only parses dates does not load it.
import type { Ajv, Options, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { addFormats } from './input/formats.ts'

const commonOptions = {
  strict: false,
  validateSchema: false,
  allErrors: true,
  // Ajv's code optimization takes a third of the compile time, with no measurable gain.
  code: { optimize: false },
} as const

const inputOptions = {
  useDefaults: true,
  verbose: true,
  // validation-errors.ts writes the error sentences, so Ajv need not.
  messages: false,
} as const

/**
 * Returns an Ajv 2020-12 instance with the contract's formats. It is typed as Ajv's draft-07 class,
 * the only class in openapi-backend's types; both classes share one implementation.
 */
export const newAjv = (options: Options = {}): Ajv =>
  addFormats(new Ajv2020({ ...commonOptions, ...options }) as unknown as Ajv)

/** Returns an Ajv instance for request bodies and parameters. */
export const newInputAjv = (options: Options = {}): Ajv => newAjv({ ...inputOptions, ...options })

let inputAjv: Ajv | undefined

/** Returns a validator for values from outside a request, such as the rows of an import. */
export function compileInput(schema: object): ValidateFunction {
  inputAjv ??= newInputAjv()
  const validate = inputAjv.compile(schema)
  // The shared Ajv instance must not keep the compiled function in memory after its owner is gone.
  inputAjv.removeSchema(schema)
  return validate
}
