// Reads vCard files (RFC 6350, and the versions 2.1 and 3.0) as a table: a row per card, a column
// per kind of property. Columns that no card fills are left out.
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import { unreadable } from '../errors.ts'

/** The columns in order. The first ones have the names of fields. */
const columns = [
  ...['name', 'emails', 'contact_numbers', 'organization_name', 'job_title', 'tags'],
  ...['department', 'nickname', 'address', 'birthday', 'url', 'note', 'other_properties'],
] as const
type Column = (typeof columns)[number]
type Card = Partial<Record<Column, string>>

const maxCards = 100_000
const maxCardLength = 1024 * 1024

interface Property {
  group: string
  name: string
  types: string[]
  isQuotedPrintable: boolean
  charset: string
  value: string
}

/** Yields the header, then the cards. Throws for a file without cards. */
export async function* cardRows(texts: AsyncGenerator<string>): AsyncGenerator<string[]> {
  const cards: Card[] = []
  let own: Property[] | null = null
  let depth = 0
  for await (const line of unfolded(texts)) {
    await yieldIfDue()
    const property = propertyIn(line)
    if (property === null) continue
    const { name, value } = property
    if (name === 'BEGIN' && /^vcard$/i.test(value.trim()) && ++depth === 1) own = []
    else if (name === 'END' && /^vcard$/i.test(value.trim()) && depth > 0) {
      if (--depth === 0 && own && !isGroup(own)) cards.push(cardOf(own))
      if (cards.length > maxCards) throw unreadable(`A file may have at most ${maxCards} cards.`)
    } else own?.push(property)
  }
  if (cards.length === 0) throw unreadable('The file has no complete vCard.')
  const used = columns.filter((column) => column === 'name' || cards.some((card) => card[column] !== undefined))
  yield used
  for (const card of cards) yield used.map((column) => card[column] ?? '')
}

/** Returns whether the card is a list of other cards. */
const isGroup = (properties: readonly Property[]): boolean =>
  properties.some(({ name, value }) => /^(X-ADDRESSBOOKSERVER-)?KIND$/.test(name) && /^group$/i.test(value.trim()))

/**
 * Joins the continued lines of a file before it is decoded. Some programs fold a line after 75
 * bytes, which may be inside a character.
 */
export async function* unfoldedBytes(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of bytes) {
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    // The last line may go on in the next chunk.
    const last = all.lastIndexOf(lineFeed, all.length - 3)
    const end = last < 0 ? (all.length > maxCardLength ? all.length : 0) : all.lastIndexOf(lineFeed, last - 1) + 1
    const { joined, next } = withoutFolds(all, end)
    yield joined
    rest = Buffer.from(all.subarray(next))
  }
  yield withoutFolds(rest, rest.length).joined
}

const lineFeed = 10

/**
 * Removes the folds between two bytes of one character before `end`. Returns the bytes before
 * `end`, and where the others begin. The decoded text shows all other folds.
 */
function withoutFolds(all: Buffer, end: number): { joined: Buffer; next: number } {
  const kept: Buffer[] = []
  let from = 0
  for (let at = all.indexOf(lineFeed); at >= 0 && at < end; at = all.indexOf(lineFeed, at + 1)) {
    const lineEnd = all[at - 1] === 13 ? at - 1 : at
    const isFold = all[at + 1] === 0x20 || all[at + 1] === 0x09
    if (!isFold || (all[lineEnd - 1] ?? 0) < 0x80 || (all[at + 2] ?? 0) < 0x80) continue
    kept.push(all.subarray(from, lineEnd))
    from = at + 2
  }
  kept.push(all.subarray(from, Math.max(from, end)))
  return { joined: Buffer.concat(kept), next: Math.max(from, end) }
}

/** Joins the continued lines of a file. */
async function* unfolded(texts: AsyncGenerator<string>): AsyncGenerator<string> {
  let rest = ''
  let parts: string[] = []
  let length = 0
  let isQuoted = false
  for await (const text of texts) {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const next of lines) {
      const last = parts.at(-1)
      const isFolded = /^[ \t]/.test(next)
      // A line in quoted-printable that ends with `=` goes on in the next line.
      const isOpen = isQuoted && last?.endsWith('=') === true
      if (isFolded) parts.push(next.slice(1))
      else if (isOpen) parts.splice(-1, 1, last.slice(0, -1), next)
      else {
        yield parts.join('')
        parts = [next]
        length = 0
        isQuoted = /^[^:]*;encoding=quoted-printable[;:]/i.test(next.slice(0, maxParameters))
      }
      length += next.length
    }
    if (length > maxCardLength || rest.length > maxCardLength)
      throw unreadable('A line of the file has more than 1 MiB.')
  }
  yield parts.join('')
  yield rest.replace(/\r$/, '')
}

/** The maximum length of the parameters of a line. */
const maxParameters = 1000

function propertyIn(line: string): Property | null {
  const [, group = '', name = '', parameters = '', value = ''] =
    /^(?:([\w-]+)\.)?([\w-]+)((?:;(?:"[^"]*"|[^":;])*)*):(.*)$/s.exec(line) ?? []
  if (name === '') return null
  const given = parameters.split(';').slice(1)
  const valuesOf = (key: string): string[] =>
    given
      .filter((each) => each.toLowerCase().startsWith(`${key}=`))
      .flatMap((each) =>
        each
          .slice(key.length + 1)
          .replaceAll('"', '')
          .split(','),
      )
  // Version 2.1 writes types without a name.
  const bare = given.filter((each) => !each.includes('='))
  const encodings = [...valuesOf('encoding'), ...bare].map((each) => each.toLowerCase())
  const property = {
    group: group.toLowerCase(),
    name: name.toUpperCase(),
    types: [...valuesOf('type'), ...bare].map((each) => each.toLowerCase()),
    isQuotedPrintable: encodings.includes('quoted-printable'),
    charset: valuesOf('charset')[0] ?? 'utf-8',
    value,
  }
  return property.isQuotedPrintable ? { ...property, value: decoded(property) } : property
}

function decoded({ value, charset }: Property): string {
  const bytes = Buffer.from(
    value.replace(/=([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
  return /^(iso-8859-1|windows-1252)$/i.test(charset) ? bytes.toString('latin1') : bytes.toString('utf8')
}

const unescaped = (text: string): string =>
  text.replace(/\\(n|[\\,;:])/gi, (_all, char: string) => (/n/i.test(char) ? '\n' : char)).trim()

/** Splits at a separator that no backslash precedes. */
const split = (text: string, separator: ';' | ','): string[] =>
  text.split(separator === ';' ? /(?<!\\);/ : /(?<!\\),/).map(unescaped)

/** The types of addresses and numbers that become labels, with the label. */
const labels: Readonly<Record<string, string>> = {
  ...{ work: 'work', home: 'home', cell: 'mobile', mobile: 'mobile', iphone: 'mobile', fax: 'fax' },
  ...{ pager: 'pager', other: 'other', main: 'main' },
}

function cardOf(properties: readonly Property[]): Card {
  const all = (name: string): Property[] => properties.filter((each) => each.name === name)
  const texts = (name: string): string[] =>
    all(name)
      .map(({ value }) => unescaped(value))
      .filter(Boolean)
  const first = (name: string): string => texts(name)[0] ?? ''
  const points = (name: string): string => {
    const found = all(name).flatMap((property) => {
      const value = unescaped(property.value)
        .replace(/^(tel|mailto):/i, '')
        // The parameters of a `tel:` URI (RFC 3966).
        .replace(/;ext=(\d{1,10}).*$/i, ' ext. $1')
        .replace(/;(phone-context|isub|postd)=.*$/i, '')
      return value === ''
        ? []
        : [{ value, label: labelOf(property, properties), isFirst: property.types.includes('pref') }]
    })
    const unique = found.filter(({ value }, index) => found.findIndex((each) => each.value === value) === index)
    const sorted = [...unique.filter(({ isFirst }) => isFirst), ...unique.filter(({ isFirst }) => !isFirst)]
    return sorted.length === 0 ? '' : JSON.stringify(sorted.map(({ value, label }) => ({ value, label })))
  }
  const [family = '', given = '', middle = '', prefix = '', suffix = ''] = split(all('N')[0]?.value ?? '', ';')
  const parts = [prefix, given, middle, family, suffix]
    .map((part) =>
      part
        .split(',')
        .map((each) => each.trim())
        .join(' '),
    )
    .filter(Boolean)
  const [organization = '', ...departments] = split(all('ORG')[0]?.value ?? '', ';')
  const categories = [...new Set(all('CATEGORIES').flatMap(({ value }) => split(value, ',')))].filter(Boolean)
  const isCompany = texts('X-ABSHOWAS').some((each) => /^company$/i.test(each))
  const card: Record<Column, string> = {
    name: first('FN') || parts.join(' ') || (isCompany ? organization : ''),
    emails: points('EMAIL'),
    contact_numbers: points('TEL'),
    organization_name: organization,
    job_title: first('TITLE') || first('ROLE'),
    tags: categories.length === 0 ? '' : JSON.stringify(categories),
    department: departments.filter(Boolean).join(', '),
    nickname: first('NICKNAME'),
    address: all('ADR')
      .map(({ value }) => split(value, ';').filter(Boolean).join(', '))
      .filter(Boolean)
      .join(' | '),
    birthday: first('BDAY'),
    url: texts('URL').join(' | '),
    note: texts('NOTE').join('\n'),
    other_properties: properties
      .filter(({ name, value }) => kept.has(name) && value.trim() !== '')
      .map(({ name, value }) => (name === 'PHOTO' ? 'PHOTO' : `${name}: ${unescaped(value).slice(0, maxOther)}`))
      .join(' | '),
  }
  return Object.fromEntries(Object.entries(card).filter(([, value]) => value !== ''))
}

/** Other properties that people fill in, which have no field. */
const kept: ReadonlySet<string> = new Set([
  'ANNIVERSARY',
  'IMPP',
  'X-SOCIALPROFILE',
  'RELATED',
  'GENDER',
  'LANG',
  'TZ',
  'PHOTO',
])
const maxOther = 200

/** Returns the label of an address or number: that of Apple programs, or that of its type. */
function labelOf({ group, types }: Property, properties: readonly Property[]): string | null {
  const own = group === '' ? undefined : properties.find((each) => each.group === group && each.name === 'X-ABLABEL')
  const text =
    own &&
    unescaped(own.value)
      .replace(/^_\$!<(.*)>!\$_$/, '$1')
      .toLowerCase()
  if (text) return text.slice(0, 30)
  const known = types.flatMap((type) => labels[type] ?? [])
  return known.find((label) => label === 'fax' || label === 'mobile') ?? known[0] ?? null
}
