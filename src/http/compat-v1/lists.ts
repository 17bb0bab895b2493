// Converts the query of a list: paging, sorting, searches and filters of version 1 become those of
// the contract. Unknown filters are ignored. A filter that cannot match any record gives an empty
// list.
import type { OperationFact } from '../../contract/operations.gen.ts'
import { fieldValues } from './names.ts'
import type { RewriteRow } from './rows.ts'
import { isFields, type JsonFields, textOfField, type Vocabulary } from './values.ts'

/** The maximum page size of the contract. `pagination=0` requests a page of this size. */
const maxPageSize = 100
const usualPageSize = 10

/** Parameters of the contract that are not filters. Version 1 has other names for them. */
const notFilters = 'page per_page sort cursor count include fields q custom_attributes'.split(' ')
/** The parameters of version 1 that are not filters. */
const listWords = 'limit pagination order search searchFields searchJoin orderBy sortedBy query with filter'.split(' ')
const reserved = new Set([...notFilters, ...listWords])

/** Matches the names of filters for an e-mail address or a telephone number. */
const address = /(?:^|[._])(?:(e-?mails?)|phones?|mobiles?|(?:contact|phone)_numbers?)(?:$|[._[])/i

/** No record has this id. */
const unusedId = String(Number.MAX_SAFE_INTEGER)

/** Returns whether the reply has neither `links` nor `meta`. */
export const isUnpaged = (row: RewriteRow, sent: JsonFields): boolean =>
  row.list === 'bare' || (row.list === 'page' && textOfField(sent.pagination) === '0')

export function listQuery(
  row: RewriteRow,
  fact: OperationFact,
  sent: JsonFields,
  vocabulary: Vocabulary,
): URLSearchParams {
  const { schemas } = vocabulary
  const known = schemas.parameters(fact)
  const query = new URLSearchParams(row.include === undefined ? {} : { include: row.include })
  const isWhole = row.list === 'page' && isUnpaged(row, sent)
  query.set('per_page', isWhole ? String(maxPageSize) : sizeOf(sent.limit, row.limit))
  query.set('page', isWhole ? '1' : pageOf(sent.page))
  const sort = sortOf(sent, fact, vocabulary)
  if (sort !== undefined) query.set('sort', sort)
  const { words, filters } = searchOf(sent, (name) => parameterOf(name, fact, vocabulary) !== undefined)
  if (words.length > 0 && known.has('q')) query.set('q', words.join(' '))
  for (const [name, value] of [...filtersOf(sent), ...filters]) {
    const parameter = parameterOf(name, fact, vocabulary)
    if (parameter === undefined && !address.test(name)) continue
    if (parameter === undefined || value === '') return emptyListQuery(query, known)
    query.set(parameter, contractValue(parameter, value))
  }
  return query
}

/** Returns the values of a filter, a list with commas, as the contract has them. */
function contractValue(parameter: string, value: string): string {
  const values = Object.entries(fieldValues[parameter.replace(/\[.*/, '')] ?? {})
  return value
    .split(',')
    .map((sent) => values.find(([, old]) => old === sent)?.[0] ?? sent)
    .join(',')
}

/**
 * Returns a query whose result is an empty list. Returns the same query when the list has no filter
 * by id.
 */
export function emptyListQuery(query: URLSearchParams, known: ReadonlySet<string>): URLSearchParams {
  if (!known.has('id')) return query
  const kept = [...query].filter(([name]) => name === 'page' || name === 'per_page')
  return new URLSearchParams([...kept, ['id', unusedId]])
}

function sizeOf(limit: unknown, usual = usualPageSize): string {
  const text = textOfField(limit)
  return /^[1-9]\d{0,8}$/.test(text) ? String(Math.min(Number(text), maxPageSize)) : String(usual)
}

function pageOf(page: unknown): string {
  const text = textOfField(page)
  return /^[1-9]\d{0,8}$/.test(text) ? text : '1'
}

/**
 * Returns the `sort` of the contract. Lists use `sort` and `order`, searches `orderBy` and
 * `sortedBy`.
 */
function sortOf(sent: JsonFields, fact: OperationFact, { schemas }: Vocabulary): string | undefined {
  const [sort, orderBy] = [textOfField(sent.sort), textOfField(sent.orderBy)]
  const name = sort || orderBy
  const key = schemas.listedNames(fact).canonical.get(name) ?? name
  const direction = (sort ? textOfField(sent.order) || 'desc' : textOfField(sent.sortedBy) || 'asc').toLowerCase()
  if (!schemas.sortKeys(fact).has(key)) return undefined
  return direction === 'desc' ? `-${key}` : key
}

/** Returns the filters as texts. Joins a list of values with commas. */
const filtersOf = (sent: JsonFields): [name: string, value: string][] =>
  Object.entries(sent)
    .flatMap(([name, value]): [string, unknown][] =>
      isFields(value) ? Object.entries(value).map(([key, each]) => [`${name}[${key}]`, each]) : [[name, value]],
    )
    .filter(([name]) => !reserved.has(name))
    .map(([name, value]) => [name, [value].flat().map(textOfField).join(',')])

/** Returns the parameter of the contract for a filter, or undefined. */
function parameterOf(field: string, fact: OperationFact, { schemas, customTypes }: Vocabulary): string | undefined {
  const known = schemas.parameters(fact)
  const { canonical } = schemas.listedNames(fact)
  const name = field.replace(/^[^[]+/, (own) => canonical.get(own) ?? own)
  if (known.has(name)) return name
  const entity = schemas.customEntity(fact)
  if (entity !== undefined && customTypes(entity).has(name)) return `custom_attributes[${name}]`
  const [found, mail] = address.exec(name) ?? []
  const other = mail === undefined ? 'phone' : 'email'
  return found !== undefined && known.has(other) ? other : undefined
}

/**
 * Splits a search such as `search=name:Ada;email:ada@example.com` with
 * `searchFields=name:like;email:=` into words and filters. A part is a filter if its operator is
 * `=` and the list has that filter. The values of all other parts are words.
 */
function searchOf(sent: JsonFields, isFilter: (name: string) => boolean) {
  const text = textOfField(sent.search) || textOfField(sent.query)
  const operators = new Map(
    partsOf(textOfField(sent.searchFields)).map((part): [string, string] => {
      const [name = '', operator = '='] = part.split(':')
      return [name, operator.toLowerCase()]
    }),
  )
  const words = new Set<string>()
  const filters: [name: string, value: string][] = []
  for (const part of partsOf(text)) {
    const [, own, rest] = /^([a-z_.]+):(.*)$/is.exec(part) ?? []
    const name = own ?? (operators.size === 1 ? [...operators.keys()][0] : undefined)
    const value = (rest ?? part).trim()
    if (name !== undefined && (operators.get(name) ?? '=') === '=' && isFilter(name)) filters.push([name, value])
    else if (value !== '') words.add(value)
  }
  return { words: [...words], filters }
}

const partsOf = (text: string): string[] =>
  text
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
