// Converts canonical replies to the form of version 1: pages, records and errors.
import type { OperationFact } from '../../contract/operations.gen.ts'
import { Problem, type problemDocument } from '../../contract/output/problems.ts'
import { isUnpaged } from './lists.ts'
import type { RewriteRow } from './rows.ts'
import type { RenamedFields } from './schemas.ts'
import { isFields, type JsonFields, toVersion1, type Vocabulary } from './values.ts'

/** The facts that the conversion of a reply depends on. */
export interface Answering {
  row: RewriteRow
  /** The operation whose reply is converted: the last one that ran. */
  fact: OperationFact
  sent: JsonFields
  /** The path and the query of the request of version 1. */
  path: string
  query: string
  /** The reply of the row's first operation. */
  first: JsonFields
}

/** Converts the body of a canonical reply to version 1. */
export function version1Body(reply: JsonFields, answering: Answering, vocabulary: Vocabulary): unknown {
  const { row, fact, sent, first } = answering
  const schema = vocabulary.schemas.reply(fact)
  const converted = (schema ? toVersion1(reply, schema, vocabulary) : reply) as JsonFields
  const listed = row.list ? pageOrList(converted, isUnpaged(row, sent), answering) : converted
  const presented = row.present ? row.present(listed, first) : listed
  // In version 1, a reply without data has its message in both places.
  const isMessage = isFields(presented) && presented.data === undefined && typeof presented.message === 'string'
  return isMessage ? { data: { message: presented.message }, message: presented.message } : presented
}

interface Meta {
  current_page: number
  from: number | null
  /** Null when the total is not exact. */
  last_page: number | null
  path: string
  per_page: number
  to: number | null
  total: number
}

function pageOrList(page: JsonFields, isList: boolean, { fact, path, query }: Answering): JsonFields {
  if (isList) return { data: page.data }
  const { current_page, from, per_page, to, total, path: url, ...meta } = page.meta as Meta
  const { next: following } = page.links as { next: string | null }
  // A page of version 1 always has a last page: at least the next one.
  const known = Math.max(Math.ceil(total / per_page), following === null ? current_page : current_page + 1)
  const last_page = meta.last_page ?? known
  const base = url.slice(0, url.length - fact.path.length) + path
  const urlOf = (number: number): string => {
    const parameters = new URLSearchParams(query)
    parameters.set('page', String(number))
    return `${base}?${parameters}`
  }
  const prev = current_page > 1 ? urlOf(current_page - 1) : null
  const next = current_page < last_page ? urlOf(current_page + 1) : null
  const numbered = pagesShown(current_page, last_page).map((number) =>
    number === null
      ? { url: null, label: '...', active: false }
      : { url: urlOf(number), label: String(number), active: number === current_page },
  )
  const links = [
    { url: prev, label: '&laquo; Previous', active: false },
    ...numbered,
    { url: next, label: 'Next &raquo;', active: false },
  ]
  return {
    data: page.data,
    links: { first: urlOf(1), last: urlOf(last_page), prev, next },
    meta: { current_page, from, last_page, links, path: base, per_page, to, total },
  }
}

/** The number of pages listed on each side of the current page. */
const onEachSide = 3

/**
 * Returns the page numbers in `meta.links`, with null for a gap. Lists up to 13 pages completely,
 * and otherwise the first two, the last two and those around the current page.
 */
export function pagesShown(current: number, last: number): (number | null)[] {
  const span = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index)
  if (last < onEachSide * 2 + 8) return span(1, last)
  const edge = onEachSide + 4
  const [start, end] = [span(1, 2), span(last - 1, last)]
  if (current <= edge) return [...span(1, edge + onEachSide), null, ...end]
  if (current > last - edge) return [...start, null, ...span(last - (edge + onEachSide - 1), last)]
  return [...start, null, ...span(current - onEachSide, current + onEachSide), null, ...end]
}

/**
 * Returns the status of an error. In version 1, wrong credentials and a taken value are 422, and
 * any other conflict is 400. `idempotency_in_flight` stays 409.
 */
export function version1Status({ code, status }: Problem): number {
  if (code === 'invalid_credentials' || code === 'unique_violation') return 422
  return status === 409 && code !== 'idempotency_in_flight' ? 400 : status
}

/** Replaces the field names in the error by those of version 1. */
export function withVersion1Names(
  problem: Problem,
  { rename = {}, files = {} }: RewriteRow,
  names: RenamedFields,
): Problem {
  const { errors } = problem.more
  if (errors === undefined) return problem
  const ofRow = Object.entries({ ...rename, ...files }).map(([own, canonical]) => [canonical, own] as const)
  const ofRecord = [...names.version1].map(([canonical, [own = canonical]]) => [canonical, own] as const)
  const sentAs = new Map([...ofRecord, ...ofRow])
  const named = Object.entries(errors).map(([field, sentences]) => {
    const [first = '', ...rest] = field.replace(/(^|\.)custom_attributes\./, '$1').split('.')
    return [[sentAs.get(first) ?? first, ...rest].join('.'), sentences]
  })
  return new Problem(problem.code, problem.message, { ...problem.more, errors: Object.fromEntries(named) })
}

/** Returns the body of an error, without the members that only problem documents have. */
export function version1Error({
  type: _type,
  title: _title,
  status: _status,
  detail: _detail,
  instance: _instance,
  message,
  ...others
}: ReturnType<typeof problemDocument>): JsonFields {
  return { message, ...others }
}
