// An installed data folder of its own with a server in this process on it, for commands that work on folders: backups, restores, the
// doctor. Commands are called as functions; what they print and how they end is answered.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { openStore } from '../../db/open.ts'
import { fail } from '../../src/commands/fail.ts'
import type { Config } from '../../src/config.ts'
import { publishContract } from '../../src/data.ts'
import { startServer, type TestServer, testConfig } from './app.ts'

/** What every server of the tests seals with. */
export const testSecret = 'test secret of at least thirty-two characters'

export interface Installed {
  config: Config
  dataDir: string
  server: TestServer
  /** Stops the server; the folder stays. */
  stop(): Promise<void>
  close(): Promise<void>
}

export async function installed(changes: Partial<Config> = {}): Promise<Installed> {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'accord-installed-')), 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const databaseUrl = `sqlite:${join(dataDir, 'accord.db')}`
  const config = testConfig({ dataDir, databaseUrl, ...changes })
  writeFileSync(join(dataDir, 'secret'), `${testSecret}\n`, { mode: 0o600 })
  publishContract(config)
  const open = (image: Buffer) => {
    writeFileSync(join(dataDir, 'accord.db'), image, { mode: 0o600 })
    return openStore(databaseUrl)
  }
  const server = await startServer({ config: { dataDir, databaseUrl }, open })
  let isOn = true
  const stop = async (): Promise<void> => {
    if (isOn) await server.app.http.close()
    if (isOn) await server.store.close()
    isOn = false
  }
  return {
    config,
    dataDir,
    server,
    stop,
    close: async () => {
      await stop()
      rmSync(join(dataDir, '..'), { recursive: true, force: true })
    },
  }
}

export interface Said {
  stdout: string
  stderr: string
  code: number
}

/** Runs a command as the command line does, in this process. */
export async function said(command: () => Promise<unknown>): Promise<Said> {
  const lines = { stdout: '', stderr: '' }
  const out = vi.spyOn(console, 'log').mockImplementation((text: unknown) => {
    lines.stdout += `${text}\n`
  })
  const err = vi.spyOn(console, 'error').mockImplementation((text: unknown) => {
    lines.stderr += `${text}\n`
  })
  const before = process.exitCode
  process.exitCode = 0
  try {
    await command().catch(fail)
    return { ...lines, code: Number(process.exitCode) }
  } finally {
    process.exitCode = before
    out.mockRestore()
    err.mockRestore()
  }
}
