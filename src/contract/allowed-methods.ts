// Finds the methods of each path of the contract, for 405 responses. Registering a 405 route for
// every other method would add two thousand routes. Instead, requests with another method reach
// Fastify's 404 handler, which uses this file.
import { type AnyOperationId, type OperationFact, operations } from './operations.gen.ts'

/**
 * Facts about the route of a request, available before the body is read. All are undefined for an
 * unknown path.
 */
export interface RouteFacts {
  operation?: AnyOperationId
  isPublic?: boolean
  isForAnyOrigin?: boolean
  /** Whether the body consists of lines, which are read while they are answered. */
  hasLines?: boolean
  /** The media types of forms. Fastify does not read a body of these types. */
  forms?: readonly string[]
  /**
   * Whether the route sends one file from memory. Load shedding does not refuse it: it costs no
   * more than a refusal, and a page without its styles or scripts is useless.
   */
  isStaticFile?: boolean
  /**
   * The value of the `Allow` header. Set only when the path exists but not with the method of the
   * request.
   */
  methods?: string
}

interface Path {
  segments: readonly string[]
  methods: readonly string[]
  isForAnyOrigin: boolean
}

/**
 * Returns the path in Fastify's syntax: `/leads/:id([^]+)`. The pattern requires at least one
 * character, so that `/leads//` does not match with an empty id.
 */
export const routeOf = ({ path }: OperationFact): string => path.replaceAll(/\{(\w+)\}/g, ':$1([^]+)')

const paths = new Map<string, Path>()
for (const fact of Object.values(operations) as OperationFact[]) {
  const url = routeOf(fact)
  const known = paths.get(url)
  paths.set(url, {
    segments: url.split('/'),
    methods: [...(known?.methods ?? []), fact.method.toUpperCase()],
    isForAnyOrigin: known?.isForAnyOrigin === true || fact.isForAnyOrigin === true,
  })
}

const withHead = (methods: readonly string[]): string[] => [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])]

const factsOfPath = ({ methods, isForAnyOrigin }: Path): RouteFacts => ({
  isForAnyOrigin,
  methods: [...withHead(methods), 'OPTIONS'].join(', '),
})

const isParameter = (segment: string | undefined): boolean => segment?.startsWith(':') === true

/** Returns whether `path` matches every URL that `other` matches. */
const covers = (path: Path, other: Path): boolean =>
  path !== other &&
  path.segments.length === other.segments.length &&
  path.segments.every((segment, at) => isParameter(segment) || segment === other.segments[at])

export interface Hidden {
  url: string
  methods: string[]
  facts: RouteFacts
}

let hidden: Hidden[] | undefined

/**
 * Returns the methods of fixed paths that need a 405 route, because a path with a parameter would
 * match instead: `GET /leads/mass-delete` would read the lead with the id `mass-delete`.
 */
export function shadowedMethods(): readonly Hidden[] {
  hidden ??= findHidden()
  return hidden
}

function findHidden(): Hidden[] {
  const all = [...paths.values()]
  return [...paths].flatMap(([url, path]) => {
    const elsewhere = new Set(all.filter((each) => covers(each, path)).flatMap(({ methods }) => withHead(methods)))
    const methods = [...elsewhere].filter((method) => !withHead(path.methods).includes(method))
    return methods.length === 0 ? [] : [{ url, methods, facts: factsOfPath(path) }]
  })
}

/**
 * All paths in matching order: at the first difference from the left, a fixed segment precedes a
 * parameter.
 */
const ranked = [...paths.values()]
  .map((path) => ({ path, rank: path.segments.map((segment) => (isParameter(segment) ? '1' : '0')).join('') }))
  .sort((one, other) => (one.rank < other.rank ? -1 : Number(one.rank > other.rank)))
  .map(({ path }) => path)

function pathOf(url: string): Path | undefined {
  const [sent = ''] = url.split(/[?#]/)
  const segments = readable(sent).split('/')
  if (segments.length > 2 && segments.at(-1) === '') segments.pop()
  return ranked.find(
    (path) =>
      path.segments.length === segments.length &&
      path.segments.every((segment, at) => (isParameter(segment) ? segments[at] !== '' : segment === segments[at])),
  )
}

function readable(sent: string): string {
  try {
    return decodeURI(sent)
  } catch {
    return sent
  }
}

interface Request {
  is404: boolean
  url: string
  routeOptions: { config: unknown }
}

const nothing: RouteFacts = {}
const known = new WeakMap<Request, RouteFacts>()

/**
 * Returns the facts of the request's route. When no route has the method, returns the facts of the
 * path.
 */
export function routeFactsOf(request: Request): RouteFacts {
  if (!request.is404) return request.routeOptions.config as RouteFacts
  const found = known.get(request)
  if (found) return found
  const path = pathOf(request.url)
  const facts = path ? factsOfPath(path) : nothing
  known.set(request, facts)
  return facts
}

/** Returns whether an operation changes nothing: a GET, or a POST whose body is only a question. */
export const onlyReads = ({ method, ability }: Pick<OperationFact, 'method' | 'ability'>): boolean =>
  method === 'get' || ability?.endsWith(':read') === true
