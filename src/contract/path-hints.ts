// Suggests a path for a request to a path that does not exist: the path with a missing folder, the
// collection of a habitual ending such as `/create`, or the path with the most similar segments.
import { distance } from 'fastest-levenshtein'
import { type OperationFact, operations } from './operations.gen.ts'

const base = ['', 'api', 'admin']
const maxUrlLength = 200

/** The maximum edit distance of a path, over all of its segments. */
const maxDistance = 2

/** Endings in the style of other APIs, for one record and for many. */
const forOne = new Set(['create', 'new', 'add', 'store', 'insert'])
const forMany =
  /^_?(mass|bulk|batch)(-?(create|store|insert|add|import|update|upsert|edit|delete|destroy|remove|write))?$/

const all = (Object.values(operations) as OperationFact[]).map((fact) => ({ fact, segments: fact.path.split('/') }))

const isParameter = (segment: string): boolean => segment.startsWith('{')

/** Returns whether a segment has the form of an id. A fixed path such as `/leads/query` has not. */
const isId = (segment: string | undefined): boolean => segment !== undefined && /^\d+$/.test(segment)

const fits = (segments: readonly string[], sent: readonly string[]): boolean =>
  segments.length === sent.length &&
  segments.every((segment, at) => (isParameter(segment) ? isId(sent[at]) : segment === sent[at]))

/**
 * Returns a sentence that begins with a space, or an empty text when no path of the method is
 * similar. The sentence contains paths of the contract, and no part of the request.
 */
export function pathHint(method: string, url: string): string {
  const [sent = ''] = url.split(/[?#]/)
  const segments = sent.replace(/\/$/, '').toLowerCase().split('/')
  if (sent.length > maxUrlLength || segments.length < 2 || segments.slice(1).includes('')) return ''
  const verb = method.toLowerCase() === 'head' ? 'get' : method.toLowerCase()
  const known = all.filter(({ fact }) => fact.method === verb)
  return habitualHint(segments) || similarHint(segments, known, method)
}

function habitualHint(segments: readonly string[]): string {
  const last = segments.at(-1) ?? ''
  const isMany = forMany.test(last)
  if (!isMany && !forOne.has(last)) return ''
  const collection = all.find(({ fact, segments: own }) => fact.method === 'post' && fits(own, segments.slice(0, -1)))
  if (!collection) return ''
  const { fact } = collection
  if (!isMany) return ` POST ${fact.path} creates a record.`
  const many = all.filter(
    ({ fact: { method, path } }) => method === 'post' && path.startsWith(`${fact.path}/mass-`) && !path.includes('{'),
  )
  const others = many.map(({ fact: { path } }) => `POST ${path}`)
  const exists = others.length > 0 ? ` There is ${others.join(' and ')}.` : ''
  return ` POST ${fact.path} writes one record, and POST ${operations.bulkWrite.path} many of all types.${exists}`
}

type Known = readonly { fact: OperationFact; segments: readonly string[] }[]

function similarHint(segments: readonly string[], known: Known, method: string): string {
  // `/leads`, `/api/leads` and `/api/admin/persons` lack folders of the path, and
  // `/api/admin/settings/leads` has one too many.
  const rest = segments.slice(segments.findIndex((each, at) => at > 0 && each !== base[1] && each !== base[2]))
  const outer = [...base, ...rest.slice(1)]
  const inside = known.find(({ segments: own }) => fits(own.slice(-rest.length), rest) || fits(own, outer))
  if (inside) return ` Did you mean ${method} ${inside.fact.path}?`
  let best: OperationFact | undefined
  let least = maxDistance + 1
  for (const { fact, segments: own } of known) {
    if (own.length !== segments.length) continue
    const away = distanceOf(own, segments, least)
    if (away > 0 && away < least) [best, least] = [fact, away]
  }
  return best ? ` Did you mean ${method} ${best.path}?` : ''
}

/** Returns the edit distance of two paths, or `limit` if it is at least that. */
function distanceOf(own: readonly string[], sent: readonly string[], limit: number): number {
  let sum = 0
  for (const [at, segment] of own.entries()) {
    const other = sent[at] ?? ''
    if (isParameter(segment) ? !isId(other) : Math.abs(segment.length - other.length) >= limit) return limit
    if (!isParameter(segment) && segment !== other) sum += distance(segment, other)
    if (sum >= limit) return limit
  }
  return sum
}
