// The value formats of the contract: validates values and converts dates and
// timestamps to their canonical form.
import type { Ajv } from 'ajv'
import { DateTime } from 'luxon'
import { isEmailAddress } from './email-addresses.ts'

const offset = /(?:z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$/i
const timestamp = /^\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/i
const canonicalTimestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
const dateOnly = /^\d{4}-\d{2}-\d{2}$/

const inRange = (time: DateTime): boolean => time.isValid && time.year >= 1 && time.year <= 9999

/**
 * Returns the timestamp in UTC with milliseconds, or undefined for an invalid text. A text without
 * an offset is a local time in `zone`. A date without a time is the start of the day in `zone`.
 */
export function canonicalTime(text: string, zone: string): string | undefined {
  if (dateOnly.test(text)) return hasBoundaries(text, zone) ? dayBoundary(text, zone, false) : undefined
  if (!timestamp.test(text)) return undefined
  const iso = text.replace(/[t ]/i, 'T')
  const read = DateTime.fromISO(iso, offset.test(iso) ? {} : { zone })
  // When the clocks are set back, an hour occurs twice. The first occurrence is chosen, because
  // Luxon's own choice depends on the current offset.
  const time = (read.getPossibleOffsets()[0] ?? read).toUTC()
  return inRange(time) ? time.toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'") : undefined
}

/**
 * Returns the calendar date, or undefined for an invalid text. For a timestamp, returns its date in
 * `zone`.
 */
export function canonicalDate(text: string, zone: string): string | undefined {
  if (dateOnly.test(text)) return inRange(DateTime.fromISO(text, { zone: 'utc' })) ? text : undefined
  const time = canonicalTime(text, zone)
  return time === undefined ? undefined : DateTime.fromISO(time, { zone }).toFormat('yyyy-MM-dd')
}

/**
 * Returns the start of a day in `zone` as a UTC timestamp. With `end`, returns the last millisecond
 * of the day.
 */
export function dayBoundary(date: string, zone: string, end: boolean): string {
  const day = DateTime.fromISO(date, { zone })
  return (end ? day.endOf('day') : day.startOf('day')).toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
}

/**
 * Returns whether the day is valid in `zone`, and its start and end in UTC are in the years 1 to
 * 9999.
 */
export function hasBoundaries(date: string, zone: string): boolean {
  const day = DateTime.fromISO(date, { zone })
  return inRange(day) && inRange(day.startOf('day').toUTC()) && inRange(day.endOf('day').toUTC())
}

export const isDateOnly = (text: string): boolean => dateOnly.test(text)

/** Returns whether a number has at most 15 digits before the decimal point and 4 after it. */
export function isDecimal4(value: number): boolean {
  return Number.isFinite(value) && /^-?\d{1,15}(?:\.\d{1,4})?$/.test(String(value))
}

/**
 * Returns whether a text has the form of a telephone number. It may contain other characters, such
 * as "ext.".
 */
const phone = (text: string): boolean => text.length <= 40 && text.replace(/\D/g, '').length >= 3
export const countryCodes: ReadonlySet<string> = new Set(
  'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW'.split(
    ' ',
  ),
)

const isDate = (text: string): boolean => canonicalDate(text, 'utc') === text
/**
 * Returns a date or a timestamp, or undefined for an invalid text. A date stays a date, because a
 * filter needs its start or its end, depending on the operator.
 */
export function canonicalInstant(text: string, zone: string): string | undefined {
  if (!isDateOnly(text)) return canonicalTime(text, zone)
  return hasBoundaries(text, zone) ? text : undefined
}

const isTimestamp = (text: string): boolean => canonicalTimestamp.test(text) && canonicalTime(text, 'utc') === text

const texts: Record<string, (text: string) => boolean> = {
  email: isEmailAddress,
  phone,
  country: (text) => countryCodes.has(text),
  date: isDate,
  'date-time': isTimestamp,
  instant: (text) => isTimestamp(text) || isDate(text),
  url: (text) => /^https?:\/\//i.test(text),
}
const numbers = new Set(['money', 'decimal'])

/**
 * The valid values of the schema keyword `x-value`. Each names a rule that standard formats and
 * patterns cannot express completely.
 */
export const valueNames: readonly string[] = [...Object.keys(texts), ...numbers]

/**
 * Adds the contract's formats and keywords to an Ajv instance. The formats accept only normalized
 * values.
 */
export function addFormats(ajv: Ajv): Ajv {
  ajv.addFormat('date', isDate)
  ajv.addFormat('date-time', isTimestamp)
  ajv.addFormat('double', true)
  ajv.addFormat('password', true)
  ajv.addFormat('binary', true)
  ajv.addFormat('file', true)
  ajv.addKeyword({
    keyword: 'x-value',
    schemaType: 'string',
    compile: (name: string) => {
      const isText = texts[name]
      if (isText) return (value: unknown) => typeof value !== 'string' || isText(value)
      if (numbers.has(name)) return (value: unknown) => typeof value !== 'number' || isDecimal4(value)
      throw new Error(`There is no value ${name}.`)
    },
  })
  ajv.addKeyword({ keyword: 'x-line', schemaType: 'boolean' })
  ajv.addKeyword({ keyword: 'x-strict', schemaType: 'boolean' })
  ajv.addKeyword({ keyword: 'x-explicit-null', schemaType: 'boolean' })
  ajv.addKeyword({ keyword: 'x-reference', schemaType: 'string' })
  for (const keyword of ['x-entity', 'x-since', 'x-deprecated-on', 'x-sunset', 'x-replaced-by', 'x-alias'])
    ajv.addKeyword({ keyword, schemaType: 'string' })
  return ajv
}
