// Recognizes the layout of a file by its headers, and turns its rules into those of a mapping.
import type { ImportColumn } from '../../map-columns/columns.ts'
import type { ColumnRule, ImportType, Mapping } from '../../settings.ts'
import { normalizeHeader } from '../suggest-fields.ts'
import { contactLayouts } from './contacts.ts'
import { crmContactLayouts } from './crm-contacts.ts'
import { dealLayouts } from './deals.ts'
import type { Layout, LayoutRule } from './layout.ts'

const layouts: readonly Layout[] = [...contactLayouts, ...dealLayouts, ...crmContactLayouts]

/** Returns the layout that knows most of the headers, those for the type first. */
export function recognizeLayout(type: ImportType, headers: readonly string[]): Layout | undefined {
  const present = new Set(headers.map(normalizeHeader))
  const known = ({ columns }: Layout): number => headers.filter((each) => ruleOf(columns, each) !== undefined).length
  const found = layouts
    .filter(({ marks }) => marks.every((some) => some.some((mark) => present.has(mark))))
    .sort((one, other) => known(other) - known(one))
  return found.find((layout) => layout.type === type) ?? found[0]
}

/**
 * Returns what the layout maps the header to, or undefined for a header that the layout does not
 * know. Fields that the type does not have are left out.
 */
export function mappedByLayout(
  { columns }: Layout,
  header: string,
  headers: readonly string[],
  fields: ReadonlyMap<string, ImportColumn>,
): Mapping[string] | undefined {
  const name = normalizeHeader(header)
  const rule = ruleOf(columns, header)
  if (rule === undefined) return undefined
  if (rule === null) return null
  if (typeof rule === 'string') return fields.has(rule) ? rule : null
  const number = /(?<=^|\s)\d+(?=\s|$)/.exec(name)?.[0] ?? ''
  const known = rule.fields.filter((field) => fields.has(field))
  // The only column of a field needs no rule.
  const isOnly = rule.isFallback && !headers.some((each) => each !== header && isFor(columns, each, known))
  if (isOnly && known[0] !== undefined) return known[0]
  return known.length === 0 ? null : toRule({ ...rule, fields: known }, number, headers)
}

/** Returns the rule of the header, or undefined for a header that the layout does not know. */
function ruleOf(columns: Layout['columns'], header: string): LayoutRule | string | null | undefined {
  const name = normalizeHeader(header)
  const pattern = name.replace(/(?<=^|\s)\d+(?=\s|$)/, '#')
  const isNamed = (key: string): boolean => key.split('|').some((each) => each === name || each === pattern)
  return Object.entries(columns).find(([key]) => isNamed(key))?.[1]
}

const isFor = (columns: Layout['columns'], header: string, wanted: readonly string[]): boolean => {
  const rule = ruleOf(columns, header)
  return typeof rule === 'string'
    ? wanted.includes(rule)
    : (rule?.fields.some((each) => wanted.includes(each)) ?? false)
}

function toRule(rule: LayoutRule, number: string, headers: readonly string[]): ColumnRule {
  const { fields, order, isFallback, label, labelColumn, values, fillDown } = rule
  const group = fillDown === undefined ? undefined : headers.find((header) => normalizeHeader(header) === fillDown)
  const wanted = labelColumn?.replace('#', number)
  const labelled = wanted === undefined ? undefined : headers.find((header) => normalizeHeader(header) === wanted)
  return {
    fields: [...fields],
    ...(order !== undefined && { order }),
    ...(isFallback && { fallback: true }),
    ...(label !== undefined && { label }),
    ...(labelled !== undefined && { label_column: labelled }),
    ...(values && { values: { ...values } }),
    ...(group !== undefined && { fill_down: group }),
  }
}
