// Proposes custom attributes for the columns of a file that fill no field. The type is guessed from
// the first rows; a value of a later row that does not fit is an error of its row.

import { flagIn } from '../../../contract/input/flags.ts'
import type { Context } from '../../../kernel/context.ts'
import { attributesOf } from '../../attributes/attribute-set.ts'
import { entityFields } from '../../attributes/served-contract.ts'
import { importColumns } from '../map-columns/columns.ts'
import { type DateFormat, readFormattedDate } from '../read-cells/cell-formats.ts'
import { type ImportRow, type Mapping, planOf } from '../settings.ts'
import { sampleColumns } from './analyze-file.ts'
import { detectDateFormat, detectDecimalSeparator } from './detect-formats.ts'
import { normalizeHeader } from './suggest-fields.ts'

type ProposedType = 'boolean' | 'date' | 'datetime' | 'number' | 'text' | 'textarea'

export interface ProposedAttribute {
  header: string
  code: string
  name: string
  type: ProposedType
}

const maxCodeLength = 64
const maxNameLength = 255
const maxTextLength = 255

/**
 * Returns an attribute for each column that the mapping leaves out and that has values in the first
 * rows, and a header of its own. Codes differ from the fields of the type and from each other.
 */
export async function proposeAttributes(ctx: Context, row: ImportRow, mapping: Mapping): Promise<ProposedAttribute[]> {
  const { type } = planOf(row)
  const taken = new Set([
    ...(await importColumns(ctx, type)).keys(),
    ...entityFields(ctx.services.contract, type),
    ...(await attributesOf(ctx, type)).map(({ code }) => code),
  ])
  const labels = new Set(
    Object.values(mapping).flatMap((mapped) => (typeof mapped === 'object' && mapped?.label_column) || []),
  )
  const proposed: ProposedAttribute[] = []
  const columns = await sampleColumns(ctx, row)
  const isRepeated = (header: string): boolean => columns.filter((each) => each.header === header).length > 1
  for (const { header, values } of columns) {
    const filled = values.map((value) => value.trim()).filter((value) => value !== '')
    if (header === '' || mapping[header] !== null || labels.has(header) || filled.length === 0) continue
    if (isRepeated(header)) continue
    const code = freeCode(header, taken)
    taken.add(code)
    proposed.push({ header, code, name: header.slice(0, maxNameLength), type: typeOf(header, filled, row) })
  }
  return proposed
}

/** Returns the code of a header: `Date of birth` becomes `date_of_birth`. */
function freeCode(header: string, taken: ReadonlySet<string>): string {
  const words = normalizeHeader(header)
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
  const code = (/^[a-z]../.test(words) ? words : `field_${words}`.replace(/_$/, '')).slice(0, maxCodeLength)
  for (let number = 1; ; number++) {
    const tried = number === 1 ? code : `${code.slice(0, maxCodeLength - 4)}_${number}`
    if (!taken.has(tried) && !(tried in Object.prototype)) return tried
  }
}

function typeOf(header: string, values: readonly string[], row: ImportRow): ProposedType {
  const given = { date: row.date_format as DateFormat | null, decimal: row.decimal_separator }
  const numbers = detectDecimalSeparator([{ header, values }])
  if (values.every(isPlainNumber) && (given.decimal !== null || isCertain(numbers))) return 'number'
  if (values.every((value) => flagIn(value) !== undefined)) return 'boolean'
  const dates = detectDateFormat([{ header, values }])
  if (given.date !== null || isCertain(dates)) {
    const date = given.date ?? dates.format
    const read = values.map((value) => readFormattedDate(value, { date, locale: 'en' }))
    if (read.every((value) => /^\d{4}-\d\d-\d\d$/.test(value))) return 'date'
    if (read.every((value) => /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d.*)?$/.test(value))) return 'datetime'
  }
  return values.some((value) => value.length > maxTextLength || value.includes('\n')) ? 'textarea' : 'text'
}

const isCertain = ({ open, isMixed }: { open: string | null; isMixed: boolean }): boolean => open === null && !isMixed

/** Whether a text is a number. Codes such as 00123 and telephone numbers such as +49 are not. */
const isPlainNumber = (text: string): boolean =>
  text.length <= maxNumberLength && /^-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:[.,'’]\d{3})+)(?:[.,]\d+)?$/.test(text)

const maxNumberLength = 15
