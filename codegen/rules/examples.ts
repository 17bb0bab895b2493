// Checks that each example and default in the contract is valid against its schema.
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { partsOf } from '../grammar.ts'
import { isObject, namePlace, type Path, refPath, resolve } from '../read.ts'
import type { Rule } from '../rule.ts'

/**
 * Reports examples and defaults that Ajv rejects. Ajv accepts every value of a format that it does
 * not implement, such as money, percent, password and binary.
 */
export const examplesAreTrue: Rule = ({ document, report }) => {
  const ajv = new Ajv2020({
    strict: false,
    validateSchema: false,
    logger: false,
    allErrors: false,
    addUsedSchema: false,
  })
  ajvFormats.default(ajv)
  ajv.addSchema(document, 'contract')

  const check = (schemaAt: Path, value: unknown, at: Path) => {
    const where = namePlace(document, schemaAt)
    try {
      const validate = ajv.getSchema(`contract#${pointer(schemaAt)}`)
      if (!validate || validate(value)) return
      report(
        at,
        where,
        `the ${at.includes('default') ? 'default' : 'example'} is not valid: ${describe(validate.errors?.[0])}.`,
      )
    } catch (error) {
      report(schemaAt, where, `the schema cannot be compiled: ${error instanceof Error ? error.message : error}.`)
    }
  }

  for (const { kind, node, at } of partsOf(document)) {
    if (kind === 'schema') {
      for (const key of ['example', 'default']) if (node[key] !== undefined) check(at, node[key], [...at, key])
      const examples = Array.isArray(node.examples) ? node.examples : []
      for (const [index, value] of examples.entries()) check(at, value, [...at, 'examples', index])
    }
    if (kind === 'parameter' || kind === 'header' || kind === 'mediaType') {
      if (node.schema === undefined) continue
      if (node.example !== undefined) check([...at, 'schema'], node.example, [...at, 'example'])
      for (const [name, example] of Object.entries(isObject(node.examples) ? node.examples : {})) {
        const shared = isObject(example) && typeof example.$ref === 'string' ? refPath(example.$ref) : undefined
        const found = isObject(example) ? resolve<Record<string, unknown>>(document, example) : undefined
        if (found?.value !== undefined) check([...at, 'schema'], found.value, shared ?? [...at, 'examples', name])
      }
    }
  }
}

function pointer(at: Path): string {
  return at.map((step) => `/${encodeURIComponent(String(step).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')
}

function describe(error: ErrorObject | undefined): string {
  if (!error) return 'unknown reason'
  const detail = isObject(error.params) ? Object.values(error.params).flat().filter(isWord).join(', ') : ''
  return `${error.instancePath || 'it'} ${error.message}${detail && !error.message?.includes(detail) ? ` (${detail})` : ''}`
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number'
}
