// Typed events on top of mitt (DOMAIN 17.1). A `before` listener refuses a write by throwing a
// Veto. Errors of `after` listeners are caught, because in mitt one error would stop all later
// listeners.
import mitt, { type Emitter as Mitt, type WildcardHandler } from 'mitt'
import type { Log, Origin } from '../context.ts'

export interface Actor {
  type: 'user' | 'system'
  id: number | null
  name: string
}

export type Snapshot = Record<string, unknown>

/**
 * The argument of a listener. `before` has input and current entity; `after` has entity, before and
 * changed.
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
  /** Set on `<base>.create` when a deleted record was restored. */
  restored?: true
}

/**
 * The last words of bare event names. These events repeat a change after its create or update event
 * (DOMAIN 17.2).
 */
export const followUps = ['restore', 'won', 'lost', 'reopened'] as const

/**
 * Thrown by a `before` listener to refuse a write; the caller gets 403 `event_vetoed` with the
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

/** The argument of an extension module. Patterns may use `*` for one segment: `lead.*.after`. */
export interface Emitter {
  on(pattern: string, listener: Listener): () => void
  emit(event: AccordEvent): void
  /** Returns whether any listener matches this event name. */
  isHeard(name: string): boolean
  Veto: typeof Veto
}

/** Prefixes of event names, each with the prefix that replaces it. */
export type EventAliases = readonly (readonly [RegExp, string])[]

/**
 * Returns a test for event names by a pattern: `*` stands for one segment, or alone for every
 * event.
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
  // mitt is typed as CommonJS under nodenext: its default export arrives one level down.
  const create = mitt as unknown as () => Mitt<Record<string, AccordEvent>>
  const bus = create()
  const listeners = new Map<object, (name: string) => boolean>()
  const heard = new Map<string, boolean>()
  return {
    Veto,
    on(pattern, listener) {
      const matches = matcher(pattern, aliases)
      // All listeners use mitt's `*`, so they run in the order of registration, whatever their
      // pattern.
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
