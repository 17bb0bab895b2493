// The types `date` and `datetime`.
import { canonicalDate, canonicalTime } from '../../../contract/input/formats.ts'
import { anyOf, keyOfValue, textAt, type ValueType } from './value-type.ts'

const moment = (format: string, read: (text: string, zone: string) => string | undefined): ValueType => ({
  input: () => ({ type: 'string', format }),
  output: () => ({ type: 'string', format }),
  example: () => (format === 'date' ? '2026-03-31' : '2026-03-01T09:30:00.000Z'),
  keys: keyOfValue,
  read,
  takes: format === 'date' ? 'dates such as 2026-03-31' : 'timestamps such as 2026-03-01T09:30:00Z',
  matches: anyOf(textAt),
  isOrdered: true,
  sorts: textAt,
  indexed: textAt,
})

export const dateType = moment('date', canonicalDate)
export const datetimeType = moment('date-time', canonicalTime)
