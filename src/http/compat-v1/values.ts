// Converts values between version 1 and the contract, in both directions. The conversion depends on
// the schema of the value, or on the type of the custom attribute.
import { numberIn } from '../../contract/input/unsafe-numbers.ts'
import { type ContractSchema, type ContractSchemas, typesOfSchema } from './schemas.ts'

/** Returns the types of the custom attributes of an entity, by code. */
export type CustomTypes = (entity: string) => ReadonlyMap<string, string>

/** The schemas and types that a conversion depends on. */
export interface Vocabulary {
  schemas: ContractSchemas
  customTypes: CustomTypes
}

export type JsonFields = Record<string, unknown>

export const isFields = (value: unknown): value is JsonFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a scalar as a text, and an empty text for null, lists and objects. */
export const textOfField = (value: unknown): string =>
  typeof value === 'object' || value === undefined ? '' : String(value).trim()

/** Sets a key of any name. An assignment to `__proto__` would set the prototype. */
export const setField = (fields: JsonFields, key: string, value: unknown): void =>
  void Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })

const kindOfSchema = ({ format, 'x-value': value }: ContractSchema): string | undefined => value ?? format
const isPassword = ({ format }: ContractSchema): boolean => format === 'password'

/**
 * Converts a value of a request to the form of the contract. Returns undefined for a value that
 * counts as not sent. An invalid value stays unchanged, so that the validator refuses it.
 */
export function toCanonical(sent: unknown, schema: ContractSchema, vocabulary: Vocabulary): unknown {
  const branches = vocabulary.schemas.branches(schema)
  const types = new Set(branches.flatMap(typesOfSchema))
  if (types.size === 0) return sent
  const value = sent === '' && (types.has('null') || !types.has('string')) ? null : sent
  if (value === null || (value === '' && branches.some(isPassword))) return withoutValue(types, branches)
  const list = branches.find(({ items }) => items)
  const record = branches.find(({ properties }) => properties)
  if (record && isFields(value) && (!list || hasFieldOf(value, record, vocabulary)))
    return recordOf(value, record, vocabulary)
  if (list?.items && (typeof value !== 'string' || !types.has('string')))
    return entriesOf(value, list.items, vocabulary)
  // PHP encodes an empty map as an empty list.
  if (record && Array.isArray(value) && value.length === 0) return undefined
  return scalarOf(alone(value), types, branches)
}

/** Returns the entry of a one-entry list, because version 1 accepts `[6]` for the id 6. */
const alone = (value: unknown): unknown => (Array.isArray(value) && value.length === 1 ? value[0] : value)

/**
 * Converts an empty value: null where the contract allows null or a text, and otherwise undefined,
 * which counts as not sent.
 */
function withoutValue(types: ReadonlySet<string>, branches: readonly ContractSchema[]): null | undefined {
  if (types.has('null')) return null
  return types.has('string') && !branches.some(isPassword) ? null : undefined
}

const hasFieldOf = (sent: JsonFields, schema: ContractSchema, { schemas }: Vocabulary): boolean => {
  const { canonical } = schemas.names([schema])
  return Object.keys(sent).some((key) => Object.hasOwn(schema.properties ?? {}, canonical.get(key) ?? key))
}

function recordOf(sent: JsonFields, schema: ContractSchema, vocabulary: Vocabulary): JsonFields {
  const { properties = {} } = schema
  const { canonical } = vocabulary.schemas.names([schema])
  const own = properties.custom_attributes
  const entity = own && vocabulary.schemas.branches(own).find((each) => each['x-entity'])?.['x-entity']
  const types = entity === undefined ? undefined : vocabulary.customTypes(entity)
  const record: JsonFields = {}
  const custom: JsonFields = {}
  const nested = isFields(sent.custom_attributes) ? Object.entries(sent.custom_attributes) : []
  for (const [name, each] of [...Object.entries(sent), ...(types ? nested : [])]) {
    const key = canonical.get(name) ?? name
    const type = types?.get(key)
    if (type !== undefined) setField(custom, key, valueOfType(each, type))
    else if (types && key === 'custom_attributes') continue
    else if (Object.hasOwn(properties, key) && properties[key]) {
      const value = toCanonical(each, properties[key], vocabulary)
      if (value !== undefined) record[key] = value
    }
  }
  if (Object.keys(custom).length > 0) record.custom_attributes = custom
  return record
}

const isTrue = (value: unknown): boolean => value === true || value === 'true' || value === 1 || value === '1'

/**
 * Returns the entries of a list, which may be sent as a map. A numeric key of the map is the id of
 * an existing row (`{"12": {…}}`). Any other key means a new row (`{"product_0": {…}}`).
 */
function entriesOf(sent: unknown, items: ContractSchema, vocabulary: Vocabulary): unknown {
  const entries = isFields(sent) ? Object.entries(sent).map(withId) : listOf(sent, items, vocabulary)
  const isPhone = vocabulary.schemas
    .branches(items)
    .some(({ properties }) => properties?.value && kindOfSchema(properties.value) === 'phone')
  return entries
    .filter((each) => !isFields(each) || !(isTrue(each.isDelete) || (isPhone && isEmpty(each.value))))
    .map((each) => toCanonical(each, items, vocabulary))
    .filter((each) => each !== undefined)
}

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === ''

function withId([key, each]: [string, unknown]): unknown {
  const isNew = !isFields(each) || !/^[1-9]\d*$/.test(key) || !isEmpty(each.id) || isTrue(each.isNew)
  return isNew ? each : { ...each, id: Number(key) }
}

function listOf(sent: unknown, items: ContractSchema, { schemas }: Vocabulary): readonly unknown[] {
  if (Array.isArray(sent)) return sent
  const isOfIds = schemas.branches(items).some((each) => typesOfSchema(each).includes('integer'))
  return typeof sent === 'string' && isOfIds ? sent.split(',') : [sent]
}

const yesNo = new Map<unknown, boolean>([
  ['on', true],
  ['yes', true],
  ['off', false],
  ['no', false],
])

function scalarOf(value: unknown, types: ReadonlySet<string>, branches: readonly ContractSchema[]): unknown {
  if (types.has('boolean')) return yesNo.get(value) ?? value
  if (types.has('string')) {
    if (typeof value === 'number') return String(value)
    const isDate = branches.some((each) => kindOfSchema(each) === 'date')
    return isDate && typeof value === 'string' ? value.replace(midnight, '') : value
  }
  return types.has('integer') || types.has('number') ? numberOf(value) : value
}

/** Replies of version 1 have dates as midnight in UTC, regardless of the time zone. */
const midnight = /[T ]00:00:00(\.0+)?Z?$/

const numberOf = (value: unknown): unknown =>
  (typeof value === 'string' ? numberIn(value, { isWhole: false }) : undefined) ?? value

const idsOf = (value: unknown): unknown =>
  (isFields(value) ? Object.values(value) : Array.isArray(value) ? value : String(value).split(','))
    .filter((each) => !isEmpty(each))
    .map(numberOf)

/** Converts a value to the form that the contract requires for a custom attribute of this type. */
export function valueOfType(value: unknown, type: string): unknown {
  if (isEmpty(value)) return null
  if (type === 'boolean') return yesNo.get(value) ?? value
  if (/^(price|select|lookup|image|file)$/.test(type)) return numberOf(alone(value))
  if (/^(multiselect|checkbox)$/.test(type)) return idsOf(value)
  if (/^(email|phone)$/.test(type))
    return isFields(value) ? Object.values(value) : typeof value === 'string' ? [{ value }] : value
  return typeof value === 'number' ? String(value) : value
}

/** The schemas of amounts of money. */
const amounts = new Set(
  ['Money', 'SignedMoney', 'MoneySum', 'NullableMoneySum'].map((name) => `#/components/schemas/${name}`),
)
/** The date fields that are timestamps in version 1. */
const stampedDates = new Set(['expected_close_date', 'expired_at'])

const inMicroseconds = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/\.(\d{3})Z$/, '.$1000Z') : value

/** Returns an amount of money as a text with four decimals. */
const amountText = (value: unknown): unknown => (typeof value === 'number' ? value.toFixed(4) : value)

/** Converts a value of a reply to version 1. `key` is the name of its field. */
export function toVersion1(value: unknown, schema: ContractSchema, vocabulary: Vocabulary, key = ''): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (value === null || value === undefined) return value
  const branches = vocabulary.schemas.branches(schema)
  if (Array.isArray(value)) {
    const items = branches.find((each) => each.items)?.items
    return items ? value.map((each) => toVersion1(each, items, vocabulary)) : value
  }
  if (isFields(value)) return fieldsToVersion1(value, branchOf(value, branches), vocabulary)
  if (typeof value === 'number') return amounts.has(schema.$ref ?? '') ? amountText(value) : value
  const format = branches.find((each) => each.format)?.format
  if (format === 'date') return stampedDates.has(key) ? `${value}T00:00:00.000000Z` : value
  return format === 'date-time' ? inMicroseconds(value) : value
}

/**
 * Returns the branch with the most properties among those whose required properties are present.
 */
function branchOf(value: JsonFields, branches: readonly ContractSchema[]): ContractSchema {
  const sizeOf = ({ properties = {} }: ContractSchema): number => Object.keys(properties).length
  return (
    branches
      .filter(({ properties, required = [] }) => properties && required.every((key) => Object.hasOwn(value, key)))
      .sort((one, other) => sizeOf(other) - sizeOf(one))[0] ?? {}
  )
}

function fieldsToVersion1(value: JsonFields, record: ContractSchema, vocabulary: Vocabulary): JsonFields {
  const { properties = {} } = record
  const { version1 } = vocabulary.schemas.names([record])
  const fields: JsonFields = {}
  for (const [key, each] of Object.entries(value)) {
    const schema = properties[key]
    const entity =
      key === 'custom_attributes' && schema
        ? vocabulary.schemas.branches(schema).find((branch) => branch['x-entity'])?.['x-entity']
        : undefined
    if (entity === undefined || !isFields(each)) {
      for (const name of version1.get(key) ?? [key])
        setField(fields, name, schema ? toVersion1(each, schema, vocabulary, name) : each)
      continue
    }
    const types = vocabulary.customTypes(entity)
    for (const [code, inner] of Object.entries(each))
      if (!Object.hasOwn(fields, code)) setField(fields, code, customToVersion1(inner, types.get(code)))
  }
  return fields
}

function customToVersion1(value: unknown, type: string | undefined): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (type === 'price') return amountText(value)
  return type === 'datetime' ? inMicroseconds(value) : value
}
