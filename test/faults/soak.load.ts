// The load of the soak test: a mix of requests of users, programs and strangers, from a seeded
// generator. As many records are deleted as created, so that lists keep their length.
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, fetch, type RequestInit } from 'undici'
import { file, form } from '../support/form.ts'
import { seeded } from './chance.ts'

export const email = 'admin@example.com'

export interface SoakLoad {
  /** The number of replies by status, and of requests without a reply by their reason. */
  counts: Map<string, number>
  /** Returns the number of running requests. */
  busy(): number
  /** Executes one random action. Never rejects. */
  one(): Promise<void>
  /** Closes all connections. Later requests open new ones. */
  hangUp(): Promise<void>
  close(): Promise<void>
}

interface Known {
  id: number
  title: string
}

const words = ['Nordlicht', 'Contoso', 'Zürich', 'Straße', 'Ünal', 'Baker', 'Quarterly', 'Renewal', 'Pilot', '東京']

export async function soakLoad(url: string, password: string, seed: number): Promise<SoakLoad> {
  const random = seeded(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const word = (): string => words[below(words.length)] ?? ''
  const counts = new Map<string, number>()
  const count = (what: string | number): void => void counts.set(String(what), (counts.get(String(what)) ?? 0) + 1)
  let agent = newAgent()
  let busy = 0
  let number = 0
  const hooks = await receiver()
  const leads: Known[] = []
  const persons: Known[] = []
  const files: number[] = []
  let token = ''

  async function call(method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<any> {
    const isBytes = Buffer.isBuffer(body)
    const answer = await fetch(`${url}${path}`, {
      method,
      dispatcher: agent,
      ...(body !== undefined && { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
      ...init,
      headers: {
        accept: 'application/json',
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && !isBytes && { 'content-type': 'application/json' }),
        ...(init.headers as Record<string, string>),
      },
    })
    count(answer.status)
    const text = await answer.text()
    return /^application\/(problem\+)?json/.test(answer.headers.get('content-type') ?? '') && text !== ''
      ? JSON.parse(text)
      : undefined
  }
  const api = (method: string, path: string, body?: unknown, init?: RequestInit) =>
    call(method, `/api/admin${path}`, body, init)

  const login = async () => (await api('POST', '/login', { email, password, device_name: 'Soak' }))?.data?.token
  token = await login()
  await api('POST', '/settings/webhooks', { name: 'Soak', url: `${hooks.url}/take`, events: ['lead.*.after'] })

  const title = (): string => `${word()} ${word()} ${++number}`
  const any = <T>(list: readonly T[]): T | undefined => list[below(list.length)]

  async function create(kind: 'leads' | 'contacts/persons', list: Known[]): Promise<void> {
    const name = title()
    const person = { name: `Person of ${name}`, emails: [{ value: `person${number}@example.com`, label: 'work' }] }
    const lead = { title: name, lead_value: below(1e5), lead_source_id: 1, lead_type_id: 1, person }
    const made = await api('POST', `/${kind}`, kind === 'leads' ? lead : person)
    if (made?.data) list.push({ id: made.data.id, title: name })
    const old = list.length > 150 ? list.shift() : undefined
    if (old) await api('DELETE', `/${kind}/${old.id}`)
  }

  /** Sends half of a request. The rest is sent late or never. */
  async function slowly(): Promise<void> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => count('cut')).resume()
    const body = JSON.stringify({ name: title(), emails: [{ value: `slow${number}@example.com`, label: 'work' }] })
    const head = `host: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`
    socket.write(`POST /api/admin/contacts/persons HTTP/1.1\r\n${head}\r\n${body.slice(0, 8)}`)
    await pause(500 + below(3000))
    if (random() < 0.5) socket.write(body.slice(8))
    await pause(below(500))
    socket.destroy()
    count('dropped')
  }

  /** Reads the event stream for a while and disconnects without notice. */
  async function listen(): Promise<void> {
    const stop = new AbortController()
    const answer = await fetch(`${url}/api/admin/events`, {
      dispatcher: agent,
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      signal: stop.signal,
    })
    count(answer.status)
    await pause(1000 + below(6000))
    stop.abort()
    await answer.text().catch(() => undefined)
  }

  async function abort(): Promise<void> {
    const signal = AbortSignal.timeout(1 + below(20))
    const path = any(['/leads?per_page=100', '/leads/export', '/search?q=Nordlicht', '/contacts/persons']) ?? ''
    await api('GET', path, undefined, { signal })
  }

  async function upload(): Promise<void> {
    const { body, headers } = await form({ file: file(`${word()}.txt`, `${word()} `.repeat(below(20_000) + 1)) })
    const made = await api('POST', '/files', body, { headers })
    if (made?.data) files.push(made.data.id)
    const old = files.length > 20 ? files.shift() : undefined
    if (old !== undefined) await api('DELETE', `/files/${old}`)
  }

  async function restore(): Promise<void> {
    const gone = leads.shift()
    if (!gone) return
    await api('DELETE', `/leads/${gone.id}`)
    const back = await api('POST', `/leads/${gone.id}/restore`)
    if (back?.data) leads.push(gone)
  }

  const wrong: (() => Promise<unknown>)[] = [
    () => api('GET', '/leads/99999999'),
    () => api('GET', '/leads?no_such_filter=1'),
    () => api('POST', '/leads', { title: 7 }),
    () => api('POST', '/leads', undefined, { body: '{"title": ', headers: { 'content-type': 'application/json' } }),
    () => api('PUT', '/leads', {}),
    () => call('GET', `/${word()}`),
    () => api('GET', '/leads', undefined, { headers: { authorization: 'Bearer 1|wrongwrongwrongwrongwrong' } }),
  ]

  const deeds: [weight: number, () => Promise<unknown>][] = [
    [20, () => api('GET', `/leads?per_page=${1 + below(50)}&page=${1 + below(3)}&sort=-created_at`)],
    [8, () => api('GET', `/leads?title=${encodeURIComponent(word())}`)],
    [8, () => api('GET', `/contacts/persons?per_page=20&include=organization`)],
    [8, () => api('GET', `/search?q=${encodeURIComponent(word())}`)],
    [8, () => api('GET', `/leads/${any(leads)?.id ?? 1}`)],
    [4, () => api('GET', `/leads/${any(leads)?.id ?? 1}/history`)],
    [3, () => api('GET', '/reports/overview')],
    [2, () => api('GET', '/leads/kanban')],
    [8, () => create('leads', leads)],
    [6, () => create('contacts/persons', persons)],
    [8, () => api('PUT', `/leads/${any(leads)?.id ?? 1}`, { title: title() })],
    [2, restore],
    [2, upload],
    [2, () => call('GET', `/api/admin/files/${any(files) ?? 1}/download`)],
    [1, () => call('GET', '/api/admin/leads/export', undefined, { headers: { accept: 'text/csv' } })],
    [1, listen],
    [1, slowly],
    [2, abort],
    [6, () => any(wrong)?.() ?? Promise.resolve()],
    [0.5, async () => api('POST', '/logout', {}, { headers: { authorization: `Bearer ${await login()}` } })],
    [0.2, () => api('POST', '/login', { email: `${word()}@example.com`, password: 'a guess', device_name: 'Soak' })],
    [1, () => api('POST', '/emails', { subject: title(), html: '<p>Soak</p>', to: ['soak@example.com'] })],
    [1, () => call('GET', '/api/admin/documentation')],
    [0.5, () => call('GET', '/readyz')],
  ]
  const sum = deeds.reduce((all, [weight]) => all + weight, 0)

  return {
    counts,
    busy: () => busy,
    async one() {
      let at = random() * sum
      const [, deed] =
        deeds.find(([weight]) => {
          at -= weight
          return at < 0
        }) ?? []
      busy++
      try {
        await deed?.()
      } catch (cause) {
        const name = cause instanceof Error ? cause.name : 'unknown'
        count(
          ['AbortError', 'TimeoutError'].includes(name)
            ? 'aborted'
            : `failed: ${String((cause as Error).cause ?? cause)}`,
        )
      } finally {
        busy--
      }
    },
    async hangUp() {
      const old = agent
      agent = newAgent()
      await old.destroy()
    },
    async close() {
      await agent.destroy()
      await new Promise((resolve) => hooks.server.close(resolve))
    },
  }
}

const newAgent = (): Agent => new Agent({ connections: 40, pipelining: 1 })

/** Receives webhooks and refuses every tenth. */
async function receiver(): Promise<{ url: string; server: Server }> {
  let taken = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(++taken % 10 === 0 ? 500 : 204).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
