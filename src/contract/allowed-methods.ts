// Which methods the paths of the contract know. The server has routes for these alone: another method on such a path goes the way of
// unknown paths and is told here which there are, so that a start does not register two thousand routes nobody asks for.
import { type OperationFact, type OperationId, operations } from './operations.gen.ts'

/** What is known of a request before it is read; nothing of one that is no operation's. */
export interface RouteFacts {
  operation?: OperationId
  isPublic?: boolean
  isForAnyOrigin?: boolean
  /** Media types of forms that are left in the connection. */
  forms?: readonly string[]
  /** The methods of the path, where it has not the one that is asked for. */
  methods?: string
}

interface Path {
  segments: readonly string[]
  methods: readonly string[]
  isForAnyOrigin: boolean
}

/** A path as the server writes it: `/leads/:id([^]+)`. Without the pattern, `/leads//` would be the lead whose id is empty. */
export const routeOf = ({ path }: OperationFact): string => path.replaceAll(/\{(\w+)\}/g, ':$1([^]+)')

/** What web forms say to the public is for scripts of any page, without credentials (DOMAIN 3.1). */
export const isForAnyOrigin = ({ public: isPublic, tag }: OperationFact): boolean => isPublic && tag === 'Web Forms'

const paths = new Map<string, Path>()
for (const fact of Object.values(operations) as OperationFact[]) {
  const url = routeOf(fact)
  const known = paths.get(url)
  paths.set(url, {
    segments: url.split('/'),
    methods: [...(known?.methods ?? []), fact.method.toUpperCase()],
    isForAnyOrigin: known?.isForAnyOrigin === true || isForAnyOrigin(fact),
  })
}

const withHead = (methods: readonly string[]): string[] => [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])]

const factsOfPath = ({ methods, isForAnyOrigin }: Path): RouteFacts => ({
  isForAnyOrigin,
  methods: [...withHead(methods), 'OPTIONS'].join(', '),
})

const isParameter = (segment: string | undefined): boolean => segment?.startsWith(':') === true

/** Whether every request for the path `other` would be one for `path` if there were no `other`. */
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

/** `GET /leads/mass-destroy` would be the lead with that id: methods that would lead to a path with a parameter instead. */
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

/** Fixed words win over parameters, from the left. */
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

/** What is known of a request, by its route or, where it has none, by its path. */
export function routeFactsOf(request: Request): RouteFacts {
  if (!request.is404) return request.routeOptions.config as RouteFacts
  const found = known.get(request)
  if (found) return found
  const path = pathOf(request.url)
  const facts = path ? factsOfPath(path) : nothing
  known.set(request, facts)
  return facts
}
