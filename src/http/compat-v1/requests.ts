// Converts a request of version 1 to the parts of a canonical request: path parameters, query and
// body. uploads.ts reads multipart forms.
import { inexactNumber, parseJson } from '../../contract/input/body.ts'
import { formPairs, nestFields } from '../../contract/input/form-fields.ts'
import { fieldErrors } from '../../contract/input/validation-errors.ts'
import { maxValues } from '../../contract/input/value-count.ts'
import type { OperationFact } from '../../contract/operations.gen.ts'
import { Problem } from '../../contract/output/problems.ts'
import { listQuery } from './lists.ts'
import type { RewriteRow } from './rows.ts'
import { isFields, type JsonFields, setField, textOfField, toCanonical, type Vocabulary } from './values.ts'

export interface CanonicalParts {
  params: Record<string, string>
  query: string
  body: Buffer | undefined
  /** The missing path parameters, with their names in version 1. */
  missing: string[]
}

/** Returns the query string with plain commas, which separate values in version 1. */
export const textOfQuery = (query: URLSearchParams): string => query.toString().replaceAll('%2C', ',')

/** Returns the fields of a query string. */
export const queryFields = (query: string): JsonFields => nestFields([...new URLSearchParams(query)], true).value

/**
 * Returns the fields of a body that is not a multipart form. Throws 400 for an unreadable body, 422
 * for a number that cannot be stored exactly, and 415 for another media type.
 */
export function bodyFields(body: Buffer | undefined, mediaType: string, contentType: string): JsonFields {
  if (body === undefined || body.length === 0) return {}
  const isJson = mediaType === 'application/json' || mediaType.endsWith('+json')
  if (!isJson && mediaType !== 'application/x-www-form-urlencoded')
    throw new Problem('unsupported_media_type', 'Send the body as JSON or as a form.')
  if (!isJson) return nestFields(formPairs(body, contentType), true).value
  const { value, inexact, found } = parseJson(textOf(body), maxValues)
  if (!isFields(value)) throw new Problem('malformed_json')
  const findings = [...found, ...inexact.map(inexactNumber)]
  if (findings.length === 0) return value
  throw new Problem('validation_failed', undefined, { errors: fieldErrors([], [], findings) })
}

function textOf(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid UTF-8.', { cause })
  }
}

/** Returns the canonical parts of a request. `sent` contains the fields of path, query and body. */
export function canonicalParts(
  row: RewriteRow,
  fact: OperationFact,
  sent: JsonFields,
  vocabulary: Vocabulary,
): CanonicalParts {
  const fields = named(row, row.arrange?.(sent) ?? sent)
  const params: Record<string, string> = {}
  const missing: string[] = []
  for (const [, name = ''] of fact.path.matchAll(/\{(\w+)\}/g)) {
    const field = row.params?.[name] ?? name
    const text = textOfField(fields[field])
    if (text === '') missing.push(field)
    params[name] = text
  }
  const query = row.list ? listQuery(row, fact, fields, vocabulary) : otherQuery(row, fact, fields, vocabulary)
  const schema = vocabulary.schemas.body(fact)
  const body = schema && Buffer.from(JSON.stringify(toCanonical(fields, schema, vocabulary) ?? {}))
  return { params, query: textOfQuery(query), body, missing }
}

/** Renames the fields of the body to their canonical names. */
function named({ rename = {}, files = {} }: RewriteRow, sent: JsonFields): JsonFields {
  const fields: JsonFields = {}
  for (const [key, value] of Object.entries(sent)) {
    const file = Object.hasOwn(files, key) ? files[key] : undefined
    const [first, ...others] = file === undefined ? [] : idsOfFiles(value)
    if (file === undefined) setField(fields, (Object.hasOwn(rename, key) ? rename[key] : undefined) ?? key, value)
    else if (first !== undefined) setField(fields, file, file.endsWith('_ids') ? [first, ...others] : first)
  }
  return fields
}

/**
 * Returns the file ids in a field. Its value is an id, a file object from a reply, or a list of
 * these. Ignores other values, such as file paths from replies.
 */
const idsOfFiles = (value: unknown): number[] =>
  [value]
    .flat()
    .map((each) => Number(isFields(each) ? each.id : each))
    .filter((id) => Number.isSafeInteger(id) && id > 0)

/** Returns the query of a request for something other than a list. */
function otherQuery(
  row: RewriteRow,
  fact: OperationFact,
  fields: JsonFields,
  { schemas }: Vocabulary,
): URLSearchParams {
  const query = new URLSearchParams(row.include === undefined ? {} : { include: row.include })
  const known = schemas.parameters(fact)
  for (const [name, field] of Object.entries(row.params ?? {}))
    if (known.has(name)) query.set(name, textOfField(fields[field]))
  return query
}
