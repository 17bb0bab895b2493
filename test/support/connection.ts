// A minimal HTTP client on one connection, for measurements. It must use little CPU time, because
// it shares the cores with the measured server. It reads only HTTP/1.1 responses with
// Content-Length.
import { connect, type Socket } from 'node:net'

export interface Asked {
  method: 'GET' | 'POST' | 'PUT'
  path: string
  body?: string
}

export interface Answer {
  status: number
  /** The status line and headers. */
  head: string
  body: Buffer
}

export class Connection {
  readonly #socket: Socket
  #got: Buffer = Buffer.alloc(0)
  #waiting: { resolve: (answer: Answer) => void; reject: (cause: Error) => void } | null = null
  readonly #head: string

  private constructor(socket: Socket, head: string) {
    this.#socket = socket
    this.#head = head
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', (cause) => this.#fail(cause))
    socket.on('close', () => this.#fail(new Error('The server closed the connection.')))
  }

  static open(url: string, token: string): Promise<Connection> {
    const { hostname, port, host } = new URL(url)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) })
      socket.once('error', reject)
      const head = ` HTTP/1.1\r\nhost: ${host}\r\naccept: application/json\r\nauthorization: Bearer ${token}\r\n`
      socket.once('connect', () => resolve(new Connection(socket, head)))
    })
  }

  ask({ method, path, body }: Asked): Promise<Answer> {
    const rest =
      body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
    this.#socket.write(`${method} ${path}${this.#head}${rest}\r\n${body ?? ''}`)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  close(): void {
    this.#waiting = null
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    this.#got = this.#got.length === 0 ? bytes : Buffer.concat([this.#got, bytes])
    const end = this.#got.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#got.toString('latin1', 0, end)
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
    if (length === undefined) {
      this.#fail(new Error(`An answer without a length: ${head}`))
      return
    }
    const whole = end + 4 + Number(length)
    if (this.#got.length < whole) return
    const body = this.#got.subarray(end + 4, whole)
    this.#got = this.#got.subarray(whole)
    const { resolve } = this.#waiting ?? {}
    this.#waiting = null
    resolve?.({ status: Number(head.slice(9, 12)), head, body })
  }

  #fail(cause: Error): void {
    this.#waiting?.reject(cause)
    this.#waiting = null
  }
}
