// A TCP proxy that acts like a virtual IP address: its target can change, and it can cut
// connections at a chosen moment.
import { connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** The port that new connections are passed to. */
  target: number
  /**
   * Called with data from a client after it was forwarded. If it returns true, the client's
   * connection is cut.
   */
  cutsAfter: (sent: string) => boolean
  /** While true, forwards no data and leaves connections open, like a power cut of the server. */
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
    // After a cut, the server still processes the data that it received.
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
