// Converts the fields of a multipart form to the body that the contract describes.
// Form values are texts, so this file parses numbers, lists and objects where the schema requires
// them. A text that cannot be parsed stays unchanged, and the validator refuses it.

import { Problem } from '../output/problems.ts'
import { parseJson } from './body.ts'
import { type Shape, typesOf } from './normalize.ts'
import { numberIn } from './unsafe-numbers.ts'
import type { Finding } from './validation-errors.ts'
import { maxValues } from './value-count.ts'

/**
 * The values of a form field, in the order of arrival. `files` contains the storage keys of
 * uploaded files.
 */
export interface FormField {
  texts: string[]
  files: string[]
}

export interface ParsedForm {
  value: Record<string, unknown>
  inexact: string[][]
  found: Finding[]
}

const branches = (shape: Shape): Shape[] => shape.anyOf ?? shape.oneOf ?? [shape]
const listOf = (shape: Shape | undefined): Shape | undefined => branches(shape ?? {}).find(({ items }) => items)?.items

/** Returns the maximum size of a file in bytes, or undefined. */
export const maxFileLength = (shape: Shape | undefined): number | undefined => (listOf(shape) ?? shape)?.maxLength

/** Returns whether a property is a file or a list of files. */
export const isFile = (shape: Shape | undefined): boolean =>
  [shape, listOf(shape)].some((each) => each !== undefined && branches(each).some(({ format }) => format === 'file'))

/**
 * Converts a form by its schema. The keys of `fields` are field names without the `[]` that some
 * clients append to the name of a list.
 */
export function readForm(fields: ReadonlyMap<string, FormField>, schema: Shape): ParsedForm {
  const form: ParsedForm = { value: {}, inexact: [], found: [] }
  const entries: [string, unknown][] = []
  for (const [name, { texts, files }] of fields) {
    const shape = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined
    const items = listOf(shape)
    const values = isFile(shape) ? files : texts
    // The senders of `x-bytes` forms are mail services, which do not handle errors. In these forms
    // a repeated field is valid, and its last value counts.
    if (values.length > 1 && !items && !schema['x-bytes']) form.found.push([name, 'Must not be sent more than once.'])
    if (shape !== undefined && files.length > 0 && !isFile(shape)) form.found.push([name, 'Must not be a file.'])
    const [only] = texts
    if (isFile(shape)) entries.push([name, items ? files : files[0]])
    else if (items && !(texts.length === 1 && isWhole(only, shape)))
      entries.push([name, texts.map((text) => readText(text, items, name, form))])
    else entries.push([name, readText(texts.at(-1) ?? '', shape ?? {}, name, form)])
  }
  form.value = Object.fromEntries(entries)
  return form
}

/**
 * Returns whether the text is the whole list as JSON, or an object as JSON where the schema allows
 * one.
 */
function isWhole(text = '', shape: Shape = {}): boolean {
  const start = text.trimStart()[0]
  return start === '[' || (start === '{' && branches(shape).flatMap(typesOf).includes('object'))
}

/**
 * Returns an error for each text where the schema requires a file, which only a multipart form can
 * contain.
 */
export function filesAsText(value: unknown, schema: Shape | undefined): Finding[] {
  if (typeof value !== 'object' || value === null) return []
  const files = Object.entries(schema?.properties ?? {}).filter(([, shape]) => isFile(shape))
  return files
    .flatMap(([name, { maxItems = Number.POSITIVE_INFINITY }]): [string, unknown][] => {
      const sent = (value as Record<string, unknown>)[name]
      // A list that is too long gets only the error about its length.
      if (Array.isArray(sent) && sent.length > maxItems) return []
      return Array.isArray(sent) ? sent.map((each, index) => [`${name}.${index}`, each]) : [[name, sent]]
    })
    .filter(([, sent]) => typeof sent === 'string')
    .map(([field]) => [field, 'Must be a file: send the body as multipart/form-data.'])
}

function readText(text: string, shape: Shape, name: string, form: ParsedForm): unknown {
  const allowed = branches(shape).flatMap(typesOf)
  if (allowed.includes('string')) return text
  const trimmed = text.trim()
  const number = allowed.includes('integer') ? numberIn(trimmed, { isWhole: true }) : undefined
  if (number !== undefined) return number
  if ((allowed.includes('object') || allowed.includes('array')) && /^[[{]/.test(trimmed)) {
    try {
      const { value, inexact, found } = parseJson(trimmed, maxValues)
      form.inexact.push(...inexact.map((path) => [name, ...path]))
      form.found.push(...found.map(([path, sentence]): Finding => [`${name}.${path}`, sentence]))
      return value
    } catch (error) {
      if (!(error instanceof Problem)) throw error
    }
  }
  return trimmed === '' && allowed.includes('null') ? null : text
}
