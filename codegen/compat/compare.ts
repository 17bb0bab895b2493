// Compares two served contracts: operations, their access, parameters, bodies, replies and events.
// Every difference is a change, and a change that can make a working client fail breaks.
import {
  type BodyOrResponse,
  type ContractDocument,
  type Listed,
  listOperations,
  type Operation,
  type Reference,
  resolve,
  type SchemaObject,
} from '../read.ts'
import { type Compared, type ContractChange, compareSchemas, keepBoth, noteDeprecation } from './compare-schema.ts'

/** Returns the differences between two served contracts, those that break first. */
export function compareContracts(before: ContractDocument, now: ContractDocument): ContractChange[] {
  const all: Compared = { before, now, seen: new Set(), changes: [] }
  const fresh = new Map(listOperations(now).map((each) => [`${each.method} ${each.path}`, each]))
  const known = listOperations(before)
  for (const each of known) {
    const found = fresh.get(`${each.method} ${each.path}`)
    if (found) compareOperations(all, each, found)
    else all.changes.push({ where: each.id, what: 'was removed', breaks: keepBoth, removed: { ...each.operation } })
  }
  for (const [place, { id, operation }] of fresh)
    if (!known.some((each) => `${each.method} ${each.path}` === place))
      all.changes.push({
        where: id,
        what: `is new: ${place.toUpperCase().replace(/ .*/, '')} ${place.split(' ')[1]}`,
        added: operation,
      })
  compareEvents(all)
  const names = (document: ContractDocument): string[] => Object.keys(document.components?.schemas ?? {})
  for (const name of names(before).filter((each) => !names(now).includes(each)))
    all.changes.push({ where: name, what: 'was renamed or removed', breaks: 'Keep the name: clients import its type.' })
  const unique = new Map(all.changes.map((each) => [keyOf(each), each]))
  return [...unique.values()].sort(
    (one, other) => Number(one.breaks === undefined) - Number(other.breaks === undefined),
  )
}

/** The text that names a change in breaking.txt. */
export const keyOf = ({ where, what }: ContractChange): string => `${where} ${what}`

function compareOperations(all: Compared, before: Listed, now: Listed): void {
  const { id } = before
  const tell = (what: string, breaks?: string): void =>
    void all.changes.push({ where: id, what, ...(breaks !== undefined && { breaks }) })
  if (now.id !== id)
    tell(`is now called ${now.id}`, 'Keep the operationId: it names the function of generated clients.')
  noteDeprecation(all, id, before.operation, now.operation)
  for (const key of ['x-permission', 'x-ability'] as const) {
    const [was, is] = [before.operation[key], now.operation[key]]
    if (was !== is && is !== undefined)
      tell(`demands the ${key.slice(2)} ${is}, not ${was ?? 'any'}`, 'Keep it: roles and tokens were made for it.')
  }
  if (before.isPublic && !now.isPublic) tell('demands a credential', 'Keep it public, or add another operation.')
  if (before.operation['x-any-origin'] === true && now.operation['x-any-origin'] !== true)
    tell('refuses pages of other origins', 'Keep `x-any-origin`: forms on other sites call it.')
  for (const event of (before.operation['x-events'] ?? []).filter((each) => !now.operation['x-events']?.includes(each)))
    tell(`no longer fires ${event}`, 'Go on firing the event: webhooks and workflows wait for it.')
  compareParameters(all, before, now)
  compareBodies(all, id, resolve(all.before, before.operation.requestBody), resolve(all.now, now.operation.requestBody))
  compareReplies(all, id, before.operation, now.operation)
}

const signs: Readonly<Record<string, string>> = { query: '?', header: 'header ', path: 'path ' }

function compareParameters(all: Compared, before: Listed, now: Listed): void {
  const [was, is] = [before, now].map(
    ({ parameters }) =>
      new Map(parameters.map((each) => [`${signs[each.part.in ?? ''] ?? ''}${each.part.name}`, each])),
  )
  for (const [place, { part, at }] of was ?? []) {
    const found = is?.get(place)?.part
    // A shared parameter is compared once, under its own name.
    const isShared = found !== undefined && at[0] === 'components'
    const where = `${isShared ? at[2] : before.id} ${place}`
    if (isShared && all.seen.has(where)) continue
    all.seen.add(where)
    if (found === undefined) {
      all.changes.push({ where, what: 'was removed', breaks: keepBoth, removed: { ...part } })
      continue
    }
    noteDeprecation(all, where, { ...part }, { ...found })
    if (found.required && !part.required)
      all.changes.push({ where, what: 'is required', breaks: 'Leave it optional, with a default.' })
    for (const key of ['style', 'explode'] as const) {
      const [one, other] = [part, found].map((each) => (each as Record<string, unknown>)[key])
      if (one !== other)
        all.changes.push({
          where,
          what: `has ${key} ${other}`,
          breaks: `Leave \`${key}\`: clients write the value by it.`,
        })
    }
    compareSchemas(all, where, 'requests', part.schema, found.schema)
  }
  for (const [place, { part }] of is ?? []) {
    if (was?.has(place)) continue
    const where = `${before.id} ${place}`
    if (part.required) all.changes.push({ where, what: 'is required', breaks: 'Leave it optional, with a default.' })
    else all.changes.push({ where, what: 'is new', added: { ...part } })
  }
}

type Body = BodyOrResponse | undefined

function compareBodies(all: Compared, id: string, before: Body, now: Body): void {
  const tell = (what: string, breaks: string): void => void all.changes.push({ where: `${id} body`, what, breaks })
  if (now?.required && !before?.required) tell('is required', 'Leave the body optional.')
  for (const [type, { schema }] of Object.entries(before?.content ?? {})) {
    const found = now?.content?.[type]
    if (found === undefined) tell(`no longer takes ${type}`, `Go on taking ${type}.`)
    else compareSchemas(all, `${id} body`, 'requests', schema, found.schema)
  }
}

const isRequired = (document: ContractDocument, header: unknown): boolean =>
  resolve(document, header as Reference & { required?: boolean })?.required === true

const isSuccess = (status: string): boolean => /^2/.test(status)

function compareReplies(all: Compared, id: string, before: Operation, now: Operation): void {
  const [was, is] = [before.responses ?? {}, now.responses ?? {}]
  const tell = (what: string, breaks?: string): void =>
    void all.changes.push({ where: id, what, ...(breaks !== undefined && { breaks }) })
  for (const [status, reply] of Object.entries(was)) {
    if (is[status] === undefined) {
      tell(`no longer answers ${status}`, `Go on answering ${status}: clients choose their way by the status.`)
      continue
    }
    const [old, fresh] = [resolve(all.before, reply), resolve(all.now, is[status])]
    for (const [type, { schema }] of Object.entries(old?.content ?? {})) {
      const found = fresh?.content?.[type]
      if (found === undefined) tell(`no longer answers ${status} as ${type}`, `Go on answering ${type}.`)
      else compareSchemas(all, `${id} ${status}`, 'replies', schema, found.schema)
    }
    for (const [name, header] of Object.entries(old?.headers ?? {}))
      if (fresh?.headers?.[name] === undefined && isRequired(all.before, header))
        tell(`lost the header ${name} of ${status}`, 'Go on sending the header.')
  }
  for (const status of Object.keys(is).filter((each) => was[each] === undefined))
    tell(
      `can answer ${status}`,
      isSuccess(status) ? `Answer success as before: a client reads the body by its status.` : undefined,
    )
}

/** Webhooks, the feed and streams send the schemas of the section `webhooks`. */
function compareEvents(all: Compared): void {
  type Hooks = Record<string, { post?: Operation }>
  const [was, is] = [all.before, all.now].map(({ webhooks = {} }) => webhooks as Hooks) as [Hooks, Hooks]
  for (const [name, { post }] of Object.entries(was)) {
    const found = is[name]?.post
    if (found === undefined) {
      all.changes.push({ where: `event ${name}`, what: 'was removed', breaks: 'Go on sending the event.' })
      continue
    }
    const [old, fresh] = [post, found].map((each) => each?.requestBody?.content?.['application/json']?.schema)
    compareSchemas(all, `event ${name}`, 'replies', old as SchemaObject, fresh as SchemaObject)
  }
  for (const name of Object.keys(is).filter((each) => was[each] === undefined))
    all.changes.push({ where: `event ${name}`, what: 'is new' })
}
