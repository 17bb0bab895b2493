// A new field as the command line describes it, and its spellings in the contract, the database and
// the code.
export interface Field {
  name: string
  type: FieldType
  min: number | undefined
  max: number | undefined
  maxLength: number
  oneOf: readonly string[]
  /** The version that brings the field, or undefined before 1.0.0. */
  since?: string | undefined
}

export const fieldTypes = ['string', 'text', 'integer', 'decimal', 'boolean', 'date', 'datetime', 'enum'] as const
export type FieldType = (typeof fieldTypes)[number]

export const usage = `Write the resource, the field and its type: npm run new-field -- leads probability integer --min 0 --max 100
Types: ${fieldTypes.join(', ')}. Options: --min and --max (integer, decimal), --max-length (string), --one-of a,b (enum).`

/** Reads the arguments after the resource. Throws an error for a user who made a mistake. */
export function fieldOf([name = '', type = '', ...options]: readonly string[]): Field {
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name))
    throw new Error(`"${name}" is not a name of a field: write lower case with underscores, such as close_reason.`)
  const known = fieldTypes.find((each) => each === type)
  if (known === undefined) throw new Error(`"${type}" is not a type. Types: ${fieldTypes.join(', ')}.`)
  const given = new Map<string, string>()
  for (let at = 0; at < options.length; at += 2) given.set(options[at] ?? '', options[at + 1] ?? '')
  const allowed = optionsOf[known] ?? []
  const unknown = [...given.keys()].find((each) => !allowed.includes(each))
  if (unknown !== undefined)
    throw new Error(`${known} has no option ${unknown}. ${allowed.length > 0 ? `Options: ${allowed.join(', ')}.` : ''}`)
  const numberOf = (option: string): number | undefined => {
    const text = given.get(option)
    if (text === undefined) return undefined
    if (!Number.isFinite(Number(text)) || text === '') throw new Error(`${option} needs a number, not "${text}".`)
    return Number(text)
  }
  const [min, max] = [numberOf('--min'), numberOf('--max')]
  if (min !== undefined && max !== undefined && min > max) throw new Error(`--min ${min} is above --max ${max}.`)
  const oneOf = (given.get('--one-of') ?? '').split(',').filter((each) => each !== '')
  if (known === 'enum' && (oneOf.length < 2 || oneOf.some((each) => !/^[a-z][a-z0-9_-]*$/.test(each))))
    throw new Error('An enum needs its values in lower case: --one-of low,high')
  return { name, type: known, min, max, maxLength: numberOf('--max-length') ?? 255, oneOf }
}

const optionsOf: Partial<Record<FieldType, readonly string[]>> = {
  string: ['--max-length'],
  integer: ['--min', '--max'],
  decimal: ['--min', '--max'],
  enum: ['--one-of'],
}

/** Returns the field in the style of names of the contract: `close_reason` is `CloseReason`. */
export const pascal = (name: string): string =>
  name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

const words = (name: string): string => name.replaceAll('_', ' ')
const sentence = (name: string): string => `${words(name).charAt(0).toUpperCase()}${words(name).slice(1)}`

/** The lowest and the highest value of a number, which every number of the contract has. */
export const bounds = ({ type, min, max }: Field): [number, number] =>
  type === 'integer' ? [min ?? 0, max ?? 2_147_483_647] : [min ?? 0, max ?? 99_999_999_999.9999]

/** A value for examples. */
export function exampleText(field: Field): string {
  const middle = Math.floor(bounds(field).reduce((sum, each) => sum + Math.min(each, 100), 0) / 2)
  const examples: Record<FieldType, string> = {
    string: sentence(field.name).slice(0, field.maxLength),
    text: `${sentence(field.name)} in a few words.`,
    integer: String(middle),
    decimal: String(middle),
    boolean: 'true',
    date: "'2026-03-31'",
    datetime: "'2026-03-01T09:30:00.000Z'",
    enum: field.oneOf[0] ?? '',
  }
  return examples[field.type]
}

/** The lines of the property in a schema of a reply or, with `isInput`, of a body. */
export function propertyLines(field: Field, schema: string, isInput: boolean): string[] {
  const { name, type, maxLength, since } = field
  const [low, high] = bounds(field)
  const described = [`description: ${sentence(name)}; null if it is unknown.`, ...(since ? [`x-since: ${since}`] : [])]
  const ref = (target: string): string[] => [`$ref: '#/components/schemas/${target}'`, ...described]
  const lines: Record<FieldType, string[]> = {
    string: [...described, "type: [string, 'null']", ...(isInput ? ['x-line: true', `maxLength: ${maxLength}`] : [])],
    text: ref('LongText'),
    integer: [...described, "type: [integer, 'null']", `minimum: ${low}`, `maximum: ${high}`],
    decimal: [
      ...described,
      "type: [number, 'null']",
      'format: double',
      'x-value: decimal',
      ...(isInput ? [`minimum: ${low}`, `maximum: ${high}`] : []),
    ],
    boolean: [...described, "type: [boolean, 'null']"],
    date: ref(isInput ? 'NullableDateInput' : 'NullableDate'),
    datetime: ref(isInput ? 'NullableTimestampInput' : 'NullableTimestamp'),
    enum: [...described, 'anyOf:', `  - $ref: '#/components/schemas/${schema}${pascal(name)}'`, "  - type: 'null'"],
  }
  return [`${name}:`, ...lines[type].map((line) => `  ${line}`)]
}

export interface FilterParameter {
  key: string
  lines: string[]
}

const comparisons = {
  gt: 'greater than',
  gte: 'greater than or equal to',
  lt: 'less than',
  lte: 'less than or equal to',
}
const times = { gt: 'after', gte: 'at or after', lt: 'before', lte: 'at or before' }

/** The filter parameters of the field. A long text has none. */
export function filterParameters(field: Field, schema: string): FilterParameter[] {
  const { name, type, maxLength, since } = field
  const key = `Filter${schema}${pascal(name)}`
  const parameter = (suffix: string, operator: string, description: string, shape: string[]): FilterParameter => ({
    key: `${key}${suffix}`,
    lines: [
      `    ${key}${suffix}:`,
      `      name: ${name}${operator === '' ? '' : `[${operator}]`}`,
      '      in: query',
      ...(since ? [`      x-since: ${since}`] : []),
      `      description: ${description}`,
      ...shape.map((line) => `      ${line}`),
    ],
  })
  const isNull = parameter(
    'Null',
    'null',
    `'\`true\` selects records without \`${name}\`; \`false\` selects records with it.'`,
    ['schema: { type: boolean }'],
  )
  const list = (items: string): string[] => [
    'explode: false',
    'schema:',
    '  type: array',
    '  maxItems: 100',
    `  items: ${items}`,
  ]
  const listed = (items: string): FilterParameter[] => [
    parameter('', '', `${sentence(name)}. Matches any of the listed values.`, list(items)),
    parameter('Not', 'not', `${sentence(name)}. Excludes the listed values.`, list(items)),
    isNull,
  ]
  const ranged = (shape: string, said: Record<string, string>): FilterParameter[] => [
    isNull,
    ...Object.entries(said).map(([operator, text]) =>
      parameter(pascal(operator), operator, `Records whose \`${name}\` is ${text} this value.`, [`schema: ${shape}`]),
    ),
  ]
  const made: Record<FieldType, () => FilterParameter[]> = {
    string: () => listed(`{ type: string, maxLength: ${maxLength} }`),
    text: () => [],
    integer: () => ranged(`{ type: integer, minimum: ${bounds(field)[0]}, maximum: ${bounds(field)[1]} }`, comparisons),
    decimal: () => ranged('{ type: number, format: double, x-value: decimal }', comparisons),
    boolean: () => [
      parameter('', '', `'\`true\` selects records with \`${name}\`; \`false\` selects those where it is false.'`, [
        'schema: { type: boolean }',
      ]),
      isNull,
    ],
    date: () => ranged('{ type: string, format: date }', times),
    datetime: () => ranged("{ $ref: '#/components/schemas/Instant' }", times),
    enum: () => listed(`{ $ref: '#/components/schemas/${schema}${pascal(name)}' }`),
  }
  return made[type]()
}

/** The column of the field in a migration, and those that are stored with it. */
export function migrationColumns({ name, type }: Field): [column: string, kind: string][] {
  const kinds: Record<FieldType, string> = {
    string: 'text()',
    text: 'text()',
    integer: 'integer()',
    decimal: 'money()',
    boolean: 'flag()',
    date: 'date()',
    datetime: 'timestamp()',
    enum: 'text()',
  }
  return [[name, kinds[type]], ...(type === 'string' ? [[`${name}_key`, 'key()'] as [string, string]] : [])]
}

/** The lines of the field in a slice. `sent` is the expression of its value in a body. */
export function sliceLines({ name, type }: Field, table: string, sent: string) {
  const nullable = (convert: string): string => `${sent} === undefined || ${sent} === null ? ${sent} : ${convert}`
  const stored: Partial<Record<FieldType, string>> = {
    decimal: nullable(`toScaled(${sent})`),
    boolean: nullable(`Number(${sent})`),
  }
  const shown: Partial<Record<FieldType, string>> = {
    decimal: `row.${name} === null ? null : fromScaled(row.${name})`,
    boolean: `row.${name} === null ? null : row.${name} === 1`,
    enum: `row.${name} as Schema<'${'{{schema}}'}'>['${name}']`,
  }
  const filters: Partial<Record<FieldType, string>> = {
    string: `textField('${table}.${name}_key')`,
    decimal: `moneyField('${table}.${name}')`,
    boolean: `flagField('${table}.${name}')`,
    datetime: `timeField('${table}.${name}')`,
  }
  return {
    sort: type === 'text' ? undefined : `${name}: '${table}.${type === 'string' ? `${name}_key` : name}',`,
    filter: type === 'text' ? undefined : `${name}: ${filters[type] ?? `valueField('${table}.${name}')`},`,
    columns: [
      `${name}: ${stored[type] ?? sent},`,
      ...(type === 'string' ? [`${name}_key: ${nullable(`textKey(${sent})`)},`] : []),
    ],
    reply: `${name}: ${shown[type] ?? `row.${name}`},`,
  }
}

/** The names that the lines of a slice use, each with its file below src/. */
export const importsOf = ({ type }: Field): [name: string, file: string][] => {
  const filter = 'kernel/query/filter.ts'
  const used: Record<FieldType, [string, string][]> = {
    string: [
      ['textField', filter],
      ['textKey', 'kernel/values/names.ts'],
    ],
    text: [],
    integer: [['valueField', filter]],
    decimal: [
      ['moneyField', filter],
      ['toScaled', 'kernel/values/money.ts'],
      ['fromScaled', 'kernel/values/money.ts'],
    ],
    boolean: [['flagField', filter]],
    date: [['valueField', filter]],
    datetime: [['timeField', filter]],
    enum: [['valueField', filter]],
  }
  return used[type]
}
