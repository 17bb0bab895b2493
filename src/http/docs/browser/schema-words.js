// @ts-check
// Describes schemas in words for readers: types, limits, values, and the fields of an object.

/** @typedef {Record<string, any>} Json */

/**
 * @typedef {object} Row A field of an object, or a parameter.
 * @property {string} name
 * @property {Json} schema
 * @property {boolean} required
 * @property {string} description
 *
 * @typedef {object} Shape One of several forms of an object.
 * @property {string} label
 * @property {Row[]} rows
 */

/** Longer patterns are for programs. */
const maxPattern = 30
/** Larger bounds only keep numbers exact, or texts finite. */
const maxBound = 1e9

/** @param {string} reference */
export const nameOf = (reference) => reference.slice(reference.lastIndexOf('/') + 1)

/**
 * Returns a schema with its `$ref` and its `allOf` merged into it. Own keys override merged ones.
 * @param {Json} schema @param {Json} schemas The schemas by name. @param {number} depth @returns {Json}
 */
export function merged(schema, schemas, depth = 0) {
  const { $ref, allOf = [], ...own } = schema
  if (depth > 20 || ($ref === undefined && allOf.length === 0)) return own
  const parts = [...($ref === undefined ? [] : [schemas[nameOf($ref)] ?? {}]), ...allOf]
  /** @type {Json} */
  let made = {}
  for (const part of [...parts.map((each) => merged(each, schemas, depth + 1)), own])
    made = {
      ...made,
      ...part,
      ...(made.properties && part.properties && { properties: { ...made.properties, ...part.properties } }),
      ...(made.required && part.required && { required: [...made.required, ...part.required] }),
    }
  return made
}

/** @type {Readonly<Record<string, [one: string, many: string]>>} */
const formats = {
  'date-time': ['date and time', 'dates with time'],
  date: ['date', 'dates'],
  time: ['time', 'times'],
  email: ['e-mail address', 'e-mail addresses'],
  uri: ['URL', 'URLs'],
  uuid: ['UUID', 'UUIDs'],
  binary: ['file', 'files'],
}
/** @type {Readonly<Record<string, [one: string, many: string]>>} */
const types = {
  string: ['text', 'texts'],
  integer: ['whole number', 'whole numbers'],
  number: ['number', 'numbers'],
  boolean: ['true or false', 'true or false'],
  object: ['object', 'objects'],
}

/** @param {Json} merged @returns {Json[]} The alternatives that say something about the type. */
const alternativesOf = ({ anyOf, oneOf }) =>
  (anyOf ?? oneOf ?? []).filter(
    (/** @type {Json} */ { type, $ref, allOf, anyOf, oneOf, properties, enum: values }) =>
      type ?? $ref ?? allOf ?? anyOf ?? oneOf ?? properties ?? values,
  )

/** @param {Json} merged @returns {string | undefined} */
function plainType({ type, properties, additionalProperties, items, enum: values }) {
  if (type) return type
  if (properties || additionalProperties) return 'object'
  if (items) return 'array'
  const [first] = values ?? []
  return first === undefined ? undefined : Number.isInteger(first) ? 'integer' : typeof first
}

/**
 * Returns the type in words, such as "list of texts or null".
 * @param {Json} schema @param {Json} schemas @param {0 | 1} many 1 for the plural. @param {number} depth
 * @returns {string}
 */
export function typeOf(schema, schemas, many = 0, depth = 0) {
  const found = merged(schema, schemas)
  const words = wordsOf(found, schemas, many, depth)
  const others = words.replaceAll(' or null', '')
  return found.nullable || others !== words ? `${others} or null` : words
}

/** @param {Json} found @param {Json} schemas @param {0 | 1} many @param {number} depth @returns {string} */
function wordsOf(found, schemas, many, depth) {
  const alternatives = depth > 6 ? [] : alternativesOf(found)
  const type = plainType(found)
  if (alternatives.length > 0 && type !== 'object') {
    const words = new Set(alternatives.map((each) => typeOf(each, schemas, many, depth + 1)))
    return [...words].join(' or ')
  }
  if (type === 'array')
    return `${many ? 'lists' : 'list'} of ${found.items ? typeOf(found.items, schemas, 1, depth + 1) : 'values'}`
  if (type === 'object') {
    const { properties, additionalProperties: values } = found
    const isMap = !properties && typeof values === 'object' && Object.keys(values).length > 0 && depth <= 6
    return (types.object?.[many] ?? '') + (isMap ? ` of ${typeOf(values, schemas, 1, depth + 1)} by key` : '')
  }
  if (type === 'string' && found.contentMediaType) return many ? 'files' : 'file'
  return (type === 'string' && formats[found.format]?.[many]) || types[type ?? '']?.[many] || 'any value'
}

/** @param {number} value */
const digits = (value) => value.toLocaleString('en', { maximumFractionDigits: 6 })

/** @param {number | undefined} least @param {number | undefined} most @param {string} unit */
function range(least, most, unit) {
  if (least !== undefined && most !== undefined)
    return least === most ? `exactly ${digits(least)}${unit}` : `${digits(least)} to ${digits(most)}${unit}`
  if (most !== undefined) return `up to ${digits(most)}${unit}`
  return least === undefined ? null : `at least ${digits(least)}${unit}`
}

/** @param {number | undefined} bound @returns {number | undefined} The bound if a reader can meet it. */
const near = (bound) => (bound === undefined || Math.abs(bound) >= maxBound ? undefined : bound)
/** @param {number | undefined} least @returns {number | undefined} */
const beyondZero = (least) => (least ? least : undefined)

/** @param {Json} found @returns {string | null} */
function bounds({ minimum, maximum, exclusiveMinimum }) {
  const most = near(maximum)
  if (exclusiveMinimum === true)
    return `more than ${digits(minimum)}${most === undefined ? '' : `, up to ${digits(most)}`}`
  // A minimum of 1 without a maximum is that of an id.
  return most === undefined && minimum === 1 ? null : range(near(minimum), most, '')
}

/**
 * Returns the limits that matter to a reader, as short texts.
 * @param {Json} schema @param {Json} schemas @returns {string[]}
 */
export function limitsOf(schema, schemas) {
  const found = merged(schema, schemas)
  const { pattern, enum: values, items, default: preset } = found
  const one = items && merged(items, schemas)
  const all = [
    values ? null : bounds(found),
    values ? null : range(beyondZero(found.minLength), near(found.maxLength), ' characters'),
    range(beyondZero(found.minItems), near(found.maxItems), ' entries'),
    range(beyondZero(found.minProperties), near(found.maxProperties), ' keys'),
    one && !one.enum && one.maxLength && range(undefined, near(one.maxLength), ' characters each'),
    found.uniqueItems ? 'no entry twice' : null,
    pattern && pattern.length <= maxPattern ? `matches ${pattern}` : null,
    preset === undefined ? null : `default ${typeof preset === 'string' ? preset : JSON.stringify(preset)}`,
  ]
  return all.filter((each) => typeof each === 'string')
}

/**
 * Returns the values that a field or the entries of a list can have, or an empty list.
 * @param {Json} schema @param {Json} schemas @param {number} depth @returns {unknown[]}
 */
export function valuesOf(schema, schemas, depth = 0) {
  const found = merged(schema, schemas)
  if (found.enum) return found.enum
  if (depth > 3) return []
  if (found.items) return valuesOf(found.items, schemas, depth + 1)
  const plain = alternativesOf(found).filter((each) => shapesOf(each, schemas).length === 0)
  const lists = plain.map((each) => valuesOf(each, schemas, depth + 1))
  return lists.every(({ length }) => length > 0) ? [...new Set(lists.flat())] : []
}

/** @param {Json} found A merged schema. @param {Json} schemas @returns {Row[]} */
function rowsIn({ properties = {}, required = [], additionalProperties: others }, schemas) {
  const rows = Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    required: required.includes(name),
    description: merged(schema, schemas).description ?? '',
  }))
  const hasShape = typeof others === 'object' && shapesOf(others, schemas).length > 0
  if (hasShape && rows.length === 0)
    rows.push({
      name: '<key>',
      schema: others,
      required: false,
      description: merged(others, schemas).description ?? '',
    })
  return rows
}

/** @param {Json} schema @param {Json} schemas @param {number} index */
function labelOf(schema, schemas, index) {
  const { properties = {}, title, description } = merged(schema, schemas)
  for (const [name, each] of Object.entries(properties)) {
    const { enum: values } = merged(/** @type {Json} */ (each), schemas)
    if (values?.length === 1) return `${name}: ${values[0]}`
  }
  return title ?? (description ? firstSentence(description)[0] : `Form ${index + 1}`)
}

/**
 * Returns the fields of an object or of the objects in a list. Several forms of an object are
 * several shapes; a type without fields has none.
 * @param {Json} schema @param {Json} schemas @param {number} depth @returns {Shape[]}
 */
export function shapesOf(schema, schemas, depth = 0) {
  const found = merged(schema, schemas)
  if (depth > 6) return []
  const own = rowsIn(found, schemas)
  if (found.items && own.length === 0) return shapesOf(found.items, schemas, depth + 1)
  const forms = alternativesOf(found).flatMap((each, index) => {
    const [first, ...more] = shapesOf(each, schemas, depth + 1)
    if (first === undefined) return []
    return more.length > 0 ? [first, ...more] : [{ ...first, label: labelOf(each, schemas, index) }]
  })
  if (own.length > 0) return [{ label: '', rows: own }, ...forms]
  return forms.length === 1 ? [{ label: '', rows: forms[0]?.rows ?? [] }] : forms
}

/**
 * Splits a description after its first sentence. A period inside backticks ends no sentence.
 * @param {string} text @returns {[first: string, rest: string]}
 */
export function firstSentence(text) {
  const end = /^(?:`[^`]*`|[^`])*?[.!?](?=\s+[A-Z`])/.exec(text)?.[0].length ?? text.length
  return [text.slice(0, end), text.slice(end).trim()]
}
