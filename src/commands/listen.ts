// `accord listen`: forwards the events of this installation to a local address, signed as a webhook
// signs them, while a receiver is developed. It reads the event log of the database, so it needs no
// webhook, no setting and no restart of the server.
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { type Context, systemContext } from '../kernel/context.ts'
import { newestEvent } from '../kernel/write/event-log.ts'
import { type Forwarded, type Forwarding, forwardEvents, forwardingSecret } from '../resources/webhooks/forward.ts'
import { patternFault } from '../resources/webhooks/rules.ts'
import { CommandError } from './command-error.ts'
import { actor, asSystem } from './context.ts'
import { counted, type ReportOptions } from './report.ts'

interface Options extends ReportOptions {
  events: string
  since?: string
  as?: string
}

/** The addresses of this machine, of containers and of the local network. */
const localNetworks = [...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], ...['::1/128', 'fc00::/7']]
const pollMs = 300
const retryMs = 2_000

export async function listenCommand(config: Config, url: string, options: Options): Promise<void> {
  assertAddress(url)
  const events = readPatterns(options.events)
  const since = readSince(options.since)
  const local = {
    ...config,
    webhookAllowHttp: true,
    webhookAllowCidrs: [...config.webhookAllowCidrs, ...localNetworks],
  }
  await asSystem(local, async (ctx) => {
    const user = await actor(ctx, config, options.as)
    const after = since ?? (await newestEvent(ctx))
    const secret = forwardingSecret(ctx)
    if (options.json) console.log(JSON.stringify({ url, events, as: user.email, secret, after }))
    else {
      console.log(`Forwarding ${events.join(', ')} to ${url}, as ${user.email} sees them. Ctrl-C ends it.`)
      console.log(`Signing secret  ${secret}\n`)
    }
    const sent = await untilStopped((signal) => follow(ctx, { url, events, user }, after, options, signal))
    if (!options.json)
      console.log(`${counted(sent.accepted + sent.failed, 'event')} sent, ${sent.failed} not accepted.`)
  })
}

interface Sent {
  accepted: number
  failed: number
}

/** Runs `work` until Ctrl-C, a signal to end, or the end of the reader of the output. */
async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const end = (): void => stop.abort()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end)
  process.stdout.once('error', end)
  try {
    return await work(stop.signal)
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, end)
    process.stdout.off('error', end)
  }
}

/** Forwards events until the signal. A fault of the database is told once, and reading goes on. */
async function follow(
  { services }: Context,
  forwarding: Forwarding,
  after: number,
  options: Options,
  signal: AbortSignal,
): Promise<Sent> {
  const sent: Sent = { accepted: 0, failed: 0 }
  let position = after
  let isFailing = false
  function tell(event: Forwarded): void {
    position = event.event_id
    if (event.attempt.error === null) sent.accepted++
    else sent.failed++
    console.log(options.json ? JSON.stringify(resultOf(event)) : lineOf(event))
  }
  while (!signal.aborted) {
    try {
      position = await forwardEvents(systemContext(services, 'cli'), forwarding, position, { tell, signal })
      if (isFailing) console.error('The event log can be read again.')
      isFailing = false
      await pause(pollMs, undefined, { signal })
    } catch (cause) {
      if (signal.aborted) break
      const reason = cause instanceof Error ? cause.message : String(cause)
      if (!isFailing) console.error(`The event log cannot be read (${reason}). Trying again until Ctrl-C.`)
      isFailing = true
      await pause(retryMs, undefined, { signal }).catch(() => undefined)
    }
  }
  return sent
}

const resultOf = ({ attempt: { at, status, duration_ms, error }, ...event }: Forwarded) => ({
  ...event,
  ...{ at, status, duration_ms, error },
})

const idWidth = 6
const nameWidth = 28

/** Returns the line of a delivery: time, id, status, event, record and error. */
function lineOf({ event_id, name, entity_type, entity_id, attempt }: Forwarded): string {
  const clock = new Date(attempt.at).toTimeString().slice(0, 8)
  const record = `${entity_type}${entity_id === null ? '' : `/${entity_id}`}`
  const end = attempt.error ?? `${attempt.duration_ms} ms`
  return `${clock}  ${String(event_id).padStart(idWidth)}  ${attempt.status ?? '---'}  ${name.padEnd(nameWidth)}  ${record}  ${end}`
}

function assertAddress(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null
  const isWeb = url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
  if (!isWeb) throw new CommandError(`Write the address as http://127.0.0.1:3000/hook, not ${text}.`)
  if (url.username !== '' || url.password !== '')
    throw new CommandError('The address must not carry a name or password.')
}

function readPatterns(text: string): string[] {
  const patterns = text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  if (patterns.length === 0) throw new CommandError('--events needs the name of an event, such as lead.create.after.')
  for (const pattern of patterns) {
    const fault = patternFault(pattern)
    if (fault !== null) throw new CommandError(`--events ${pattern}: ${fault}`)
  }
  return patterns
}

function readSince(text: string | undefined): number | undefined {
  if (text === undefined || (/^\d{1,15}$/.test(text) && Number.isSafeInteger(Number(text))))
    return text === undefined ? undefined : Number(text)
  throw new CommandError(`--since must be the id of an event, not "${text}".`)
}
