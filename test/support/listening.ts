// Starts a server on a free loopback port with a temporary data folder, for tests that need
// sockets, a browser or files on disk.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { install } from '../../src/commands/install/install.ts'
import type { Config } from '../../src/config/config.ts'
import { openData } from '../../src/installation/data-folder.ts'
import { type Running, startServer } from '../../src/server.ts'
import { testConfig } from './app.ts'
import { sentFindings } from './headers.ts'
import { document } from './schema.ts'
import { until } from './until.ts'

export interface Listening extends Running {
  dataDir: string
}

export async function listeningServer(changes: Partial<Config> = {}): Promise<Listening> {
  const dataDir = mkdtempSync(join(tmpdir(), 'accord-test-'))
  const databaseUrl = `sqlite:${join(dataDir, 'accord.db')}`
  const config = testConfig({ host: '127.0.0.1', port: 0, dataDir, databaseUrl, ...changes })
  const store = await openData(config)
  await install(config, store, { folder: dataDir })
  const running = await startServer(config, store)
  const breaches: string[] = []
  const check = (message: unknown): void => {
    const { response, server } = message as { response: ServerResponse; server: unknown }
    if (server === running.app.http.server) breaches.push(...sentFindings(document, response))
  }
  subscribe('http.server.response.finish', check)
  return {
    ...running,
    dataDir,
    close: async () => {
      unsubscribe('http.server.response.finish', check)
      await running.close()
      rmSync(dataDir, { recursive: true, force: true })
      if (breaches.length > 0) throw new Error(`A reply breaks the contract:\n${[...new Set(breaches)].join('\n')}`)
    },
  }
}

/** Waits until the server has this many requests in progress. */
export const inWork = ({ app }: Running, many: number): Promise<void> =>
  until(async () => (await app.services.metrics.text()).includes(`\naccord_http_requests_in_work ${many}\n`))
