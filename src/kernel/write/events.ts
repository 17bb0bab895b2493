// Emits typed events with mitt. A `before` listener refuses a write by throwing a
// Veto. Errors of `after` listeners are caught, because in mitt an error would keep later listeners
// from running.
import mitt, { type Emitter as Mitt, type WildcardHandler } from 'mitt'
import type { Log, Origin } from '../context.ts'

export interface Actor {
  type: 'user' | 'system'
  id: number | null
  name: string
}

export type Snapshot = Record<string, unknown>

/**
 * The argument of a listener. For a `before` event, `input` is the body and `entity` the current
 * record. For an `after` event, `entity` is the new record, `before` the old record, and `changed`
 * the changed fields.
 */
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
  /** Set when the event is the restore of a deleted record. */
  restored?: true
}

/**
 * Thrown by a `before` listener to refuse a write. The caller gets 403 `event_vetoed` with the
 * reason.
 */
export class Veto extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'Veto'
  }
}

/**
 * An error of a `before` listener other than a Veto. The write is rolled back and the caller gets
 * 500.
 */
export class ListenerFailed extends Error {}

export type Listener = (event: AccordEvent) => void | Promise<void>

/**
 * The event emitter, which every extension module gets as its argument. In a pattern, `*` matches
 * one segment of an event name: `lead.*.after`.
 */
export interface Emitter {
  on(pattern: string, listener: Listener): () => void
  emit(event: AccordEvent): void
  /** Returns whether the pattern of any listener matches this event name. */
  isHeard(name: string): boolean
  Veto: typeof Veto
}

/** Aliases for prefixes of event names, as pairs of a pattern and its replacement. */
export type EventAliases = readonly (readonly [RegExp, string])[]

/**
 * Returns a function that tests whether an event name matches a pattern. In a pattern, `*` matches
 * one segment. The pattern `*` matches every event.
 */
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
  // The cast is needed because TypeScript treats mitt as CommonJS under `nodenext` and types its
  // default export wrongly.
  const create = mitt as unknown as () => Mitt<Record<string, AccordEvent>>
  const bus = create()
  const listeners = new Map<object, (name: string) => boolean>()
  const heard = new Map<string, boolean>()
  return {
    Veto,
    on(pattern, listener) {
      const matches = matcher(pattern, aliases)
      // Every listener is registered under mitt's `*`, so that listeners run in the order of
      // registration, regardless of their patterns.
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
