// Records CPU profiles of a server over the inspector protocol, one file per kind of request. They
// do not contain the start and the warm-up. hot.ts reads them.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WebSocket } from 'undici'

export interface Profiler {
  begin(): Promise<void>
  end(file: string): Promise<void>
  close(): void
}

/** Connects to the inspector of a server at `url`. */
export async function connectProfiler(url: string, folder: string): Promise<Profiler> {
  mkdirSync(folder, { recursive: true })
  const socket = new WebSocket(url)
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error(`Nothing can be profiled at ${url}.`)))
  })
  let last = 0
  const ask = (method: string, params: object = {}): Promise<Record<string, unknown>> =>
    new Promise((resolve) => {
      const id = ++last
      const hear = ({ data }: { data: unknown }): void => {
        const answer = JSON.parse(String(data)) as { id?: number; result?: Record<string, unknown> }
        if (answer.id !== id) return
        socket.removeEventListener('message', hear)
        resolve(answer.result ?? {})
      }
      socket.addEventListener('message', hear)
      socket.send(JSON.stringify({ id, method, params }))
    })
  await ask('Profiler.enable')
  await ask('Profiler.setSamplingInterval', { interval: 500 })
  return {
    begin: async () => void (await ask('Profiler.start')),
    async end(file) {
      const { profile } = await ask('Profiler.stop')
      writeFileSync(join(folder, `${file.replaceAll(' ', '-')}.cpuprofile`), JSON.stringify(profile))
    },
    close: () => socket.close(),
  }
}
