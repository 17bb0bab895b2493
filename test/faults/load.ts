// Writers that record their replies: created, changed and deleted leads, uploaded files, refused
// writes, and writes without a reply. The fault tests check these records against the stored data.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { file, form } from '../support/form.ts'

export interface Lead {
  id: number
  title: string
  value: number
  version: number
  isDeleted: boolean
}

export interface Sent {
  id: number
  name: string
  sha256: string
}

export type Pending =
  | { kind: 'create'; key: string; title: string; value: number; own: Lead[] }
  | { kind: 'update'; lead: Lead; title: string; value: number }
  | { kind: 'delete'; lead: Lead }
  | { kind: 'upload'; key: string; name: string; bytes: Buffer }

export interface Answer {
  status: number
  body: any
  headers: Headers
}

/** The URL and a token of a server, which may be restarted. */
export interface Door {
  url: string
  token: string
}

export async function call(door: Door, method: string, path: string, sent: Call = {}): Promise<Answer> {
  const { body, headers = {} } = sent
  const isBytes = Buffer.isBuffer(body)
  const answer = await fetch(`${door.url}/api/admin${path}`, {
    method,
    headers: {
      authorization: `Bearer ${door.token}`,
      accept: 'application/json',
      ...(body !== undefined && !isBytes && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await answer.text()
  const isJson = /[/+]json/.test(answer.headers.get('content-type') ?? '')
  return { status: answer.status, body: isJson && text !== '' ? JSON.parse(text) : text, headers: answer.headers }
}

/** Repeats a request while the server returns 503, because a server is busy after its start. */
export async function patiently(work: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await work()
    if (answer.status !== 503 || tries === 100) return answer
    await pause(100)
  }
}

/** Signs in, and creates the records that leads refer to. */
export async function prepare(url: string, password: string): Promise<{ door: Door; load: Load }> {
  const door: Door = { url, token: '' }
  const make = async (path: string, body: object) => {
    const answer = await patiently(() => call(door, 'POST', path, { body }))
    if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  door.token = (await make('/login', { email: 'admin@example.com', password, device_name: 'test' })).token
  const emails = [{ value: 'ada@example.com', label: 'work' }]
  const person = (await make('/contacts/persons', { name: 'Ada', emails })).id
  const product = (await make('/products', { name: 'Pump', sku: 'P-1', price: 5 })).id
  return { door, load: createLoad({ person, product }) }
}

interface Call {
  body?: unknown
  headers?: Record<string, string>
}

/** Returns whether load shedding refused the request. */
export const isShed = ({ status, body }: Pick<Answer, 'status' | 'body'>): boolean =>
  status === 503 && body.detail === 'The server has too much to do.'

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

export interface Load {
  readonly leads: Lead[]
  readonly files: Sent[]
  /** The titles and names of writes that got 503 and must not exist. */
  readonly refused: Set<string>
  /** The writes that got 503, to repeat them with their keys. */
  readonly again: (Pending & { key: string })[]
  /** Writes without a reply. */
  readonly pending: Set<Pending>
  /** Replies that must not occur. */
  readonly strange: string[]
  /** The details of refusals. */
  readonly reasons: Set<string>
  acknowledged: number
  refusals: number
  /**
   * Starts writers, which run until they are stopped or the server ends. `fileBytes` is the size of
   * files.
   */
  write(door: Door, writers: number, random: () => number, fileBytes: number): { stop(): void; done: Promise<void> }
  send(door: Door, what: Pending): Promise<Answer>
  /** Resolves when this many writes have been acknowledged. Rejects after a timeout. */
  until(acknowledged: number): Promise<void>
  /** Records the reply to a write. */
  settle(what: Pending, answer: Answer): void
}

/** `refs`: the records that leads refer to. */
export function createLoad(refs: { person: number; product: number }): Load {
  const lists: Lead[][] = []
  let look = (): void => undefined
  const load: Load = {
    leads: [],
    files: [],
    refused: new Set(),
    again: [],
    pending: new Set(),
    strange: [],
    reasons: new Set(),
    acknowledged: 0,
    refusals: 0,
    send,
    settle,
    until: (acknowledged) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`Only ${load.acknowledged} were acknowledged.`)), 300_000)
        look = () => {
          if (load.acknowledged < acknowledged) return
          clearTimeout(late)
          look = () => undefined
          resolve()
        }
        look()
      }),
    write(door, writers, random, fileBytes) {
      let isOn = true
      const one = async (own: Lead[]): Promise<void> => {
        while (isOn) {
          const what = next(own, random, fileBytes)
          load.pending.add(what)
          let answer: Answer
          try {
            answer = await send(door, what)
          } catch {
            return
          }
          settle(what, answer)
          // Waits before the next request, as Retry-After demands.
          if (answer.status === 503) await pause(isShed(answer) ? 100 : 5)
        }
      }
      while (lists.length < writers) lists.push([])
      const done = Promise.all(lists.slice(0, writers).map(one)).then(() => undefined)
      const stop = (): void => {
        isOn = false
      }
      return { stop, done }
    },
  }

  function next(own: Lead[], random: () => number, fileBytes: number): Pending {
    const value = Math.floor(random() * 1e6)
    const living = own.filter(({ isDeleted }) => !isDeleted)
    const lead = living[Math.floor(random() * living.length)]
    const dice = random()
    if (lead && dice < 0.4) return { kind: 'update', lead, title: `${lead.title.split(' ')[0]} ${value}`, value }
    if (lead && dice < 0.5) return { kind: 'delete', lead }
    if (dice < 0.65) {
      const bytes = Buffer.alloc(Math.max(1, Math.floor(random() * fileBytes)), `${value} `)
      return { kind: 'upload', key: randomUUID(), name: `${randomUUID()}.txt`, bytes }
    }
    return { kind: 'create', key: randomUUID(), title: `L${randomUUID().replaceAll('-', '')} 0`, value, own }
  }

  async function send(door: Door, what: Pending): Promise<Answer> {
    if (what.kind === 'update')
      return call(door, 'PUT', `/leads/${what.lead.id}`, { body: { title: what.title, lead_value: what.value } })
    if (what.kind === 'delete') return call(door, 'DELETE', `/leads/${what.lead.id}`)
    const key = { 'idempotency-key': what.key }
    if (what.kind === 'upload') {
      const { body, headers } = await form({ file: file(what.name, what.bytes) })
      return call(door, 'POST', '/files', { body, headers: { ...headers, ...key } })
    }
    const body = {
      title: what.title,
      lead_value: what.value,
      person_id: refs.person,
      lead_source_id: 1,
      lead_type_id: 1,
      products: [{ product_id: refs.product, quantity: 2, price: 5 }],
    }
    return call(door, 'POST', '/leads', { body, headers: key })
  }

  function settle(what: Pending, { status, body, headers }: Answer): void {
    load.pending.delete(what)
    if (status === 503) {
      // Refusals by load shedding are not caused by the tested fault.
      if (!isShed({ status, body })) load.refusals++
      load.reasons.add(body.detail)
      if (headers.get('retry-after') === null || body.code !== 'unavailable')
        load.strange.push(`503 without Retry-After or code: ${JSON.stringify(body)}`)
      if ('key' in what) {
        load.again.push(what)
        load.refused.add(what.kind === 'create' ? what.title : what.name)
      }
      return
    }
    if (status !== (what.kind === 'create' || what.kind === 'upload' ? 201 : 200)) {
      load.strange.push(`${what.kind} was answered with ${status}: ${JSON.stringify(body)}`)
      return
    }
    load.acknowledged++
    if ('key' in what) load.refused.delete(what.kind === 'create' ? what.title : what.name)
    if (what.kind === 'create') adopt(what, body.data)
    else if (what.kind === 'upload') load.files.push({ id: body.data.id, name: what.name, sha256: sha256(what.bytes) })
    else if (what.kind === 'delete') what.lead.isDeleted = true
    else {
      if (body.data.version !== what.lead.version + 1)
        load.strange.push(`Lead ${what.lead.id} went from version ${what.lead.version} to ${body.data.version}.`)
      Object.assign(what.lead, { title: what.title, value: what.value, version: body.data.version })
    }
    look()
  }

  function adopt({ title, value, own }: Pending & { kind: 'create' }, data: { id: number; version: number }): void {
    const lead: Lead = { id: data.id, title, value, version: data.version, isDeleted: false }
    own.push(lead)
    load.leads.push(lead)
  }

  return load
}
