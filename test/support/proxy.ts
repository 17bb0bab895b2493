// A TCP proxy in front of a server, as a virtual address is: its target may change, and it may cut
// connections at a chosen moment.
import { connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** The port that new connections are passed to. */
  target: number
  /** Gets what a client sent, after it was passed on; `true` cuts the connection of the client. */
  cutsAfter: (sent: string) => boolean
  /** Passes nothing on, in either direction, and leaves connections open, as a power cut does. */
  isFrozen: boolean
  /** Cuts all connections. */
  cut(): void
  close(): Promise<void>
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(proxy.target, '127.0.0.1')
    let isCut = false
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => open.delete(socket))
    }
    client.on('data', (bytes) => {
      if (proxy.isFrozen) return
      upstream.write(bytes)
      if (!proxy.cutsAfter(bytes.toString('latin1'))) return
      isCut = true
      client.destroy()
    })
    upstream.on('data', (bytes) => {
      if (!isCut && !proxy.isFrozen) client.write(bytes)
    })
    upstream.on('close', () => client.destroy())
    // The server carries out what it received before the cut.
    client.on('close', () => (isCut ? upstream.end() : upstream.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const proxy: TcpProxy = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    target,
    isFrozen: false,
    cutsAfter: () => false,
    cut: () => {
      for (const socket of open) socket.destroy()
    },
    close: () => {
      proxy.cut()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return proxy
}
