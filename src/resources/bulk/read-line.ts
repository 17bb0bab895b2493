// Reads a line: which single operation it stands for, and with which path and body.
import { compileInput } from '../../contract/ajv.ts'
import { componentOf, resolved } from '../../contract/input/open-schema.ts'
import type { ParsedBody, SentLine } from '../../contract/input/sent.ts'
import { type Finding, fieldErrors } from '../../contract/input/validation-errors.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, OperationId, Schema } from '../../contract/types.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'

type Line = Schema<'BulkLine'>
type Fields = Record<string, unknown>
type ByOp = { readonly [Op in Line['op']]?: OperationId | undefined }

export interface ReadLine extends Pick<Line, 'op' | 'type' | 'id' | 'external_id'> {
  operation: OperationId
  body: ParsedBody | undefined
}

/** Returns the single operations of each type of record, as the contract has them. */
export const operationsByType = perOwner((services: Services): ReadonlyMap<string, ByOp> => {
  const byPlace = new Map(
    (Object.entries(operations) as [OperationId, OperationFact][]).map(([id, { method, path }]) => [
      `${method} ${path}`,
      id,
    ]),
  )
  return new Map(
    [...services.resources.values()].map(({ entity, getOperation: { path } }) => {
      const list = path.replace(/\/\{id\}$/, '')
      const found: ByOp = {
        create: byPlace.get(`post ${list}`),
        upsert: byPlace.get(`put ${list}/external/{source}/{external_id}`),
        update: byPlace.get(`put ${path}`),
        delete: byPlace.get(`delete ${path}`),
      }
      return [entity, found]
    }),
  )
})

const validatorOf = perOwner((document: object) =>
  compileInput({
    type: 'object',
    properties: { requestBody: resolved(document, componentOf(document, '#/components/schemas/BulkLine')) },
  }),
)

/** Reads a line. Throws a `Problem` for a line that the contract does not allow. */
export function readBulkLine({ services }: Context, line: SentLine): ReadLine {
  const { value, inexact, found = [] } = line.read()
  const validate = validatorOf(services.contract)
  const isOfFields = (path: string): boolean => path.startsWith('fields.')
  const own = found.filter(([field]) => !isOfFields(field))
  const faults = validate({ requestBody: value }) ? [] : (validate.errors ?? [])
  if (faults.length > 0 || own.length > 0) throw invalid(fieldErrors(faults, [], own))
  const { op, type, id, external_id, fields } = value as Line
  const operation = operationsByType(services).get(type)?.[op]
  const faultsOfKeys = keyFaults(value as Line)
  if (faultsOfKeys.length > 0 || operation === undefined) throw invalid(fieldErrors([], [], faultsOfKeys))
  const body: ParsedBody | undefined =
    op === 'delete'
      ? undefined
      : {
          value: op === 'create' ? withExternalId(fields, external_id) : (fields ?? {}),
          inexact: inexact.filter(([first]) => first === 'fields').map((path) => path.slice(1)),
          found: found.filter(([field]) => isOfFields(field)).map(([field, text]) => [field.slice(7), text]),
        }
  return { op, type, operation, body, ...(id && { id }), ...(external_id && { external_id }) }
}

/** Returns the errors of the keys by which a line names its record. */
function keyFaults({ op, id, external_id: externalId, fields }: Line): Finding[] {
  const found: Finding[] = []
  const isNew = op === 'create' || op === 'upsert'
  if (op === 'upsert' && externalId === undefined) found.push(['external_id', 'The field is required.'])
  if (isNew && id !== undefined) found.push(['id', 'Must be left out: the server sets the id of a new record.'])
  if (!isNew && (id === undefined) === (externalId === undefined))
    found.push([id === undefined ? 'id' : 'external_id', 'Send either id or external_id.'])
  if (op === 'delete' && fields !== undefined) found.push(['fields', 'Must be left out: a deletion has no fields.'])
  const text = op === 'create' ? contradiction(fields, externalId) : null
  return text === null ? found : [...found, text]
}

const partsOf = (externalId: string): [source: string, id: string] => {
  const at = externalId.indexOf(':')
  return [externalId.slice(0, at), externalId.slice(at + 1)]
}

const idsOf = (fields: Fields | undefined): Fields | undefined =>
  typeof fields?.external_ids === 'object' && fields.external_ids !== null ? (fields.external_ids as Fields) : undefined

function contradiction(fields: Fields | undefined, externalId: string | undefined): Finding | null {
  if (externalId === undefined) return null
  const [source, id] = partsOf(externalId)
  const sent = idsOf(fields)?.[source]
  if (sent === undefined || sent === id) return null
  return [`external_ids.${source}`, 'Must be the external id of the line, or left out.']
}

/** Returns the fields of a new record with the external id of the line among its external ids. */
function withExternalId(fields: Fields = {}, externalId: string | undefined): Fields {
  if (externalId === undefined || (fields.external_ids !== undefined && idsOf(fields) === undefined)) return fields
  const [source, id] = partsOf(externalId)
  return { ...fields, external_ids: { ...idsOf(fields), [source]: id } }
}

/** Returns the path parameters of the operation of a line, given the id of its record. */
export function paramsOf(
  { op, external_id: externalId = '' }: ReadLine,
  id: number | undefined,
): Record<string, string> {
  if (op === 'create') return {}
  if (op !== 'upsert') return { id: String(id) }
  const [source, text] = partsOf(externalId)
  return { source, external_id: text }
}
