// The typed events of the product on mitt (DOMAIN 17.1). `before` listeners may veto by throwing a Veto; `after` listeners are
// guarded, because in mitt a throwing listener would stop the ones behind it.
import mitt, { type Emitter as Mitt, type WildcardHandler } from 'mitt'
import type { Log, Origin } from '../context.ts'

export interface Actor {
  type: 'user' | 'system'
  id: number | null
  name: string
}

export type Snapshot = Record<string, unknown>

/** What a listener receives. `before`: input, and the entity as it is. `after`: the entity, what it was, what changed. */
export interface AccordEvent {
  name: string
  entityType: string
  entityId: number | null
  actor: Actor
  tokenId: number | null
  requestId: string
  origin: Origin
  timestamp: string
  input?: unknown
  entity?: Snapshot | null
  before?: Snapshot | null
  changed?: string[]
  related?: { type: string; id: number }
  /** A deleted record came back: `<base>.create` says so here. */
  restored?: true
}

/** The last word of bare events that follow a pair and tell of the same change once more (DOMAIN 17.2). */
export const followUps = ['restore', 'won', 'lost', 'reopened'] as const

/** Thrown by a `before` listener to refuse a write; the caller gets 403 `event_vetoed` with the reason. */
export class Veto extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'Veto'
  }
}

/** What a `before` listener threw, when it was not a Veto: a fault of the listener. The write is rolled back and answers 500. */
export class ListenerFailed extends Error {}

export type Listener = (event: AccordEvent) => void | Promise<void>

/** What a listener module receives: names, or patterns with `*` for one segment (`lead.*.after`). */
export interface Emitter {
  on(pattern: string, listener: Listener): () => void
  emit(event: AccordEvent): void
  /** Whether anybody listens to events of this name. */
  isHeard(name: string): boolean
  Veto: typeof Veto
}

/** Beginnings of event names that mean others. */
export type EventAliases = readonly (readonly [RegExp, string])[]

/** Whether names are meant by a pattern: `*` stands for one segment, alone for every event. */
export function matcher(pattern: string, aliases: EventAliases): (name: string) => boolean {
  if (pattern === '*') return () => true
  const name = aliases.reduce<string>((text, [from, to]) => text.replace(from, to), pattern)
  const source = name
    .split('*')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^.]+')
  const expression = new RegExp(`^${source}$`)
  return (candidate) => expression.test(candidate)
}

export function createEmitter(log: () => Log, aliases: EventAliases = []): Emitter {
  // mitt is typed as CommonJS under nodenext: its default export arrives one level down.
  const create = mitt as unknown as () => Mitt<Record<string, AccordEvent>>
  const bus = create()
  const listeners = new Map<object, (name: string) => boolean>()
  const heard = new Map<string, boolean>()
  return {
    Veto,
    on(pattern, listener) {
      const matches = matcher(pattern, aliases)
      // All listeners hang on mitt's `*`, which keeps them in the order they were registered, whatever their pattern.
      const handler: WildcardHandler<Record<string, AccordEvent>> = (name, event) => {
        if (!matches(String(name))) return
        if (event.name.endsWith('.before')) {
          const answer = listener(event)
          if (answer instanceof Promise) {
            answer.catch((cause: unknown) =>
              log().error(
                { err: cause, event: event.name },
                'A before listener failed after it had returned; only a synchronous throw refuses a write.',
              ),
            )
          }
          return
        }
        guard(event, listener, log())
      }
      listeners.set(handler, matches)
      heard.clear()
      bus.on('*', handler)
      return () => {
        listeners.delete(handler)
        heard.clear()
        bus.off('*', handler)
      }
    },
    emit: (event) => bus.emit(event.name, event),
    isHeard(name) {
      const known = heard.get(name)
      if (known !== undefined) return known
      const is = [...listeners.values()].some((matches) => matches(name))
      heard.set(name, is)
      return is
    },
  }
}

function guard(event: AccordEvent, listener: Listener, log: Log): void {
  const report = (cause: unknown) =>
    log.error(
      { err: cause, event: event.name, entity: event.entityId, request_id: event.requestId },
      'An after listener failed.',
    )
  try {
    Promise.resolve(listener(event)).catch(report)
  } catch (cause) {
    report(cause)
  }
}
