// A client of server-sent events. It records its position and the received events, and a test can
// cut its connection.
import { type ClientRequest, request } from 'node:http'

export interface Told {
  id: string
  event: string
  data: any
}

export interface Reader {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The received events in order. */
  told: Told[]
  /** Returns the id of the last message, which may have no event. */
  place(): string
  comments: string[]
  /** Returns the body of a refusal. */
  text(): string
  /**
   * Resolves when this many events have arrived. Rejects after a timeout, with the events so far.
   */
  until(count: number): Promise<Told[]>
  /** Resolves when the server ends the stream. */
  ended: Promise<void>
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Cuts the connection. */
  cut(): void
}

export function readStream(url: string, token: string, headers: Record<string, string> = {}): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const asked: ClientRequest = request(url, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${token}`, ...headers },
      agent: false,
    })
    asked.on('error', reject)
    asked.on('response', (reply) => {
      const told: Told[] = []
      const comments: string[] = []
      let all = ''
      let rest = ''
      let place = ''
      let look: () => void = () => undefined
      reply.setEncoding('utf8')
      reply.on('data', (text: string) => {
        all += text
        rest += text
        const blocks = rest.split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) {
          const fields = block
            .split('\n')
            .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
          const of = (name: string) => fields.find(([key]) => key === name)?.[1]
          place = of('id') ?? place
          const comment = of('')
          if (comment !== undefined) comments.push(comment)
          const data = of('data')
          if (data !== undefined) told.push({ id: of('id') ?? '', event: of('event') ?? '', data: JSON.parse(data) })
        }
        look()
      })
      reply.on('error', () => undefined)
      const ended = new Promise<void>((over) => reply.on('close', over))
      resolve({
        status: reply.statusCode ?? 0,
        headers: reply.headers,
        told,
        comments,
        place: () => place,
        text: () => all,
        ended,
        until: (count) =>
          new Promise((done, fail) => {
            const late = setTimeout(
              () => fail(new Error(`Told of ${told.length} instead of ${count}, the last ${told.at(-1)?.event}.`)),
              20_000,
            )
            look = () => {
              if (told.length < count) return
              clearTimeout(late)
              done(told)
            }
            look()
          }),
        pause: () => void reply.pause(),
        resume: () => void reply.resume(),
        cut: () => void reply.destroy(),
      })
    })
    asked.end()
  })
}
