// Chooses the settings with which `accord import` reads a file: the options, completed by the
// suggestions of the file analysis. At a terminal, the user confirms or corrects the suggestions.
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Schema } from '../contract/types.ts'
import { type Mapping, mappedFields } from '../resources/data-transfer/settings.ts'
import type { ProposedAttribute } from '../resources/data-transfer/suggest-settings/propose-attributes.ts'
import { CommandError } from './command-error.ts'

type Analysis = Schema<'ImportAnalysis'>
type Settings = Analysis['settings']

export interface SettingsOptions {
  separator?: string
  encoding?: string
  dateFormat?: string
  decimal?: string
  missingNames?: string
  unknownReferences?: string
  map?: string[] | undefined
  yes?: boolean
}

/** The options of the settings that the sentences of the API name. */
const optionNames: Readonly<Record<string, string>> = {
  date_format: '--date-format',
  decimal_separator: '--decimal',
  encoding: '--encoding',
  missing_names: '--missing-names',
  unknown_references: '--unknown-references',
}

/** Returns a sentence of the API with the options of the command instead of the settings. */
export const asOptions = (sentence: string): string =>
  sentence
    .replaceAll(/`([a-z_]+): ([a-z]+)`/g, (whole, name, value) =>
      Object.hasOwn(optionNames, name) ? `${optionNames[name]} ${value}` : whole,
    )
    .replaceAll(/\bset ([a-z_]+)/g, (whole, name) =>
      Object.hasOwn(optionNames, name) ? `set ${optionNames[name]}` : whole,
    )

/** Returns the settings that were given as options, as an unvalidated request body. */
export function givenSettings(options: SettingsOptions): Record<string, unknown> {
  const { separator, encoding, dateFormat, decimal, missingNames, unknownReferences, map } = options
  return {
    ...(separator !== undefined && { field_separator: separator === '\\t' ? '\t' : separator }),
    ...(encoding !== undefined && { encoding: encoding.toLowerCase() }),
    ...(dateFormat !== undefined && { date_format: dateFormat }),
    ...(decimal !== undefined && { decimal_separator: decimal }),
    ...(missingNames !== undefined && { missing_names: missingNames }),
    ...(unknownReferences !== undefined && { unknown_references: unknownReferences }),
    ...(map !== undefined && { mapping: Object.fromEntries(map.map(readPair)) }),
  }
}

/** Reads `Header=field`. A header may contain `=`. An empty field leaves the column out. */
function readPair(text: string): [header: string, field: string | null] {
  const at = text.lastIndexOf('=')
  if (at < 0) throw new CommandError(`Write a column and its field as Header=field, not ${text}.`)
  return [text.slice(0, at).trim(), text.slice(at + 1).trim() || null]
}

/** Maps the column to the field, and removes the field from any other column. */
function withPair(mapping: Mapping, [header, field]: readonly [string, Mapping[string]]): Mapping {
  const others = Object.entries(mapping).map(([other, its]): [string, Mapping[string]] => [
    other,
    its === field ? null : its,
  ])
  return { ...Object.fromEntries(others), [header]: field }
}

/** Returns the suggested settings, overridden by the settings that were given as options. */
function suggestedSettings({ settings }: Analysis, given: Partial<Settings>): Settings {
  const mapping = Object.entries(given.mapping ?? {}).reduce(withPair, settings.mapping)
  return { ...settings, ...given, mapping }
}

/** Returns whether the settings need a confirmation of the user. */
const isSpecial = ({ date_format, decimal_separator, header_row, mapping }: Settings): boolean =>
  date_format !== null ||
  header_row !== null ||
  decimal_separator !== null ||
  Object.entries(mapping).some(([header, field]) => header !== field)

/**
 * Returns the settings for the import, or null when the user declines. Suggestions that need a
 * confirmation apply only with --yes or at a terminal. Otherwise the result has the options and the
 * detected separator and encoding.
 */
export async function chooseSettings(
  analysis: Analysis,
  given: Partial<Settings>,
  { yes = false, isTerminal, tell, planned, createAttributes = false }: ChoiceOptions,
): Promise<Partial<Settings> | null> {
  const { field_separator, encoding } = analysis.settings
  const suggested = suggestedSettings(analysis, given)
  const isPlain = !isSpecial(suggested)
  const describe = (settings: Settings): string[] => describeSettings(analysis, settings, planned)
  if (isTerminal && !isPlain) show(describe(suggested))
  else if (!isTerminal)
    for (const line of [...describe(suggested), ...wayOn(suggested, yes, createAttributes)]) tell(line)
  if (isPlain || !(yes || isTerminal)) return { field_separator, encoding, ...given }
  return yes ? suggested : confirm(analysis, suggested, describe)
}

interface ChoiceOptions {
  yes?: boolean | undefined
  createAttributes?: boolean | undefined
  /** The attributes that the import creates. */
  planned: readonly ProposedAttribute[]
  isTerminal: boolean
  /** Prints a line about the file when it cannot ask a question. */
  tell(line: string): void
}

/** Returns lines that say how to import other columns, and whether the settings apply. */
function wayOn(suggested: Settings, yes: boolean, createsAttributes: boolean): string[] {
  const left = Object.entries(suggested.mapping).flatMap(([header, field]) => (field === null ? header : []))
  return [
    ...(left.length > 0
      ? [
          `Left out: ${left.map(onOneLine).join(', ')}. --map Header=field imports such a column${createsAttributes ? '' : ', --create-attributes makes custom attributes of them'}.`,
        ]
      : []),
    ...(isSpecial(suggested) && !yes
      ? [
          'This needs --yes. Without it, each header must be the name of a field, and dates and numbers those of the API.',
        ]
      : []),
  ]
}

/** Returns the suggested mapping, changed by the options. */
export const suggestedMapping = (analysis: Analysis, given: Partial<Settings>): Mapping =>
  suggestedSettings(analysis, given).mapping

const question = 'Import like this? [Y/n, or Header=field to change a column] '

async function confirm(
  analysis: Analysis,
  suggested: Settings,
  describe: (settings: Settings) => string[],
): Promise<Settings | null> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl+C and Ctrl+D close the input, which would leave the question pending forever.
  const ended = once(lines, 'close').then(() => 'no')
  let settings = suggested
  try {
    for (;;) {
      const answer = (await Promise.race([lines.question(question).catch(() => 'no'), ended])).trim()
      if (answer === '' || /^y(es)?$/i.test(answer)) return settings
      if (/^n(o)?$/i.test(answer)) return null
      if (!answer.includes('=')) continue
      const pair = readPair(answer)
      if (analysis.columns.some(({ header }) => header === pair[0])) {
        settings = { ...settings, mapping: withPair(settings.mapping, pair) }
        show(describe(settings))
      } else console.error(`The file has no column ${pair[0]}.`)
    }
  } finally {
    lines.close()
  }
}

const separatorNames: Readonly<Record<string, string>> = { '\t': 'tabs' }
const dateNames = { dmy: 'day, month, year', mdy: 'month, day, year', ymd: 'year, month, day' } as const

const maxShownLength = 40

/** Returns a text of the file as a part of a line. */
export function onOneLine(text: string): string {
  const lines = text.split(/[\r\n]+/).map((each) => each.trim())
  const line = lines.join(' ⏎ ')
  return line.length > maxShownLength ? `${line.slice(0, maxShownLength - 1)}…` : line
}

/** Returns lines that describe the settings, the columns and the warnings of a file. */
export function describeSettings(
  { format, layout, columns, warnings }: Analysis,
  settings: Settings,
  planned: readonly ProposedAttribute[] = [],
): string[] {
  const { field_separator: separator, encoding, date_format: dates, decimal_separator: decimal, mapping } = settings
  const facts = [
    ...(layout === null ? [] : [layout]),
    ...(format === 'csv' ? [`separated by ${separatorNames[separator] ?? separator}`, `encoding ${encoding}`] : []),
    ...(dates === null ? [] : [`dates as ${dateNames[dates]}`]),
    ...(decimal === null ? [] : [`decimals after ${decimal}`]),
  ]
  const added = new Map(planned.map(({ code, type }) => [code, `${code} (new ${type})`]))
  const cells = columns.map(({ header, samples }) => {
    const fields = Object.hasOwn(mapping, header) ? mappedFields(mapping[header] ?? null) : [header]
    const shown = fields.map((field) => added.get(field) ?? onOneLine(field)).join(' + ') || '(left out)'
    return [onOneLine(header), shown, samples.slice(0, 2).map(onOneLine).join(', ')] as const
  })
  const widthOf = (place: 0 | 1): number => Math.max(...cells.map((row) => row[place].length), 0)
  const [first, second] = [widthOf(0), widthOf(1)]
  const lines = cells.map(([header, field, values]) =>
    `  ${header.padEnd(first)}  ${field.padEnd(second)}  ${values}`.trimEnd(),
  )
  return [facts.join(', '), ...lines, ...warnings.map((warning) => `Note: ${asOptions(warning)}`)].filter(
    (line) => line !== '',
  )
}

function show(lines: readonly string[]): void {
  for (const line of lines) console.error(line)
}
