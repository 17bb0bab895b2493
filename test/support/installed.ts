// Creates installed data folders for commands such as backup, restore and doctor, with or without a
// server in this process. `said` calls a command as a function and returns its output and exit
// code.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { vi } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { reportFailure } from '../../src/commands/command-error.ts'
import type { Config } from '../../src/config/config.ts'
import { publishContract } from '../../src/installation/data-folder.ts'
import { seededImage, startServer, type TestServer, testConfig } from './app.ts'
import { file, form } from './form.ts'
import { given } from './given.ts'

/** The secret of all test servers. */
export const testSecret = 'test secret of at least thirty-two characters'

export interface Folder {
  config: Config
  dataDir: string
  store: Store
  /** Closes the store and keeps the folder. */
  stop(): Promise<void>
  close(): Promise<void>
}

export interface Installed extends Folder {
  server: TestServer
}

/** Creates an installed data folder without a server. */
export async function installedFolder(changes: Partial<Config> = {}): Promise<Folder> {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'accord-installed-')), 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const databaseUrl = `sqlite:${join(dataDir, 'accord.db')}`
  const config = testConfig({ dataDir, databaseUrl, ...changes })
  writeFileSync(join(dataDir, 'secret'), `${testSecret}\n`, { mode: 0o600 })
  publishContract(config)
  writeFileSync(join(dataDir, 'accord.db'), await seededImage(), { mode: 0o600 })
  const store = openStore(databaseUrl)
  const close = async (): Promise<void> => {
    await store.close()
    rmSync(join(dataDir, '..'), { recursive: true, force: true })
  }
  return { config, dataDir, store, stop: () => store.close(), close }
}

/**
 * Creates a working directory for commands in separate processes. Its folder `data` has the files
 * that `accord install` creates.
 */
export async function workingFolder(): Promise<string> {
  const { dataDir, stop } = await installedFolder()
  await stop()
  return dirname(dataDir)
}

/** Creates an installed data folder and starts a server on it. */
export async function installed(changes: Partial<Config> = {}): Promise<Installed> {
  const folder = await installedFolder(changes)
  const { dataDir, databaseUrl } = folder.config
  const server = await startServer({ config: { ...changes, dataDir, databaseUrl }, open: () => folder.store })
  const close = async (): Promise<void> => {
    await server.app.http.close()
    await folder.close()
  }
  return { ...folder, server, close }
}

/**
 * Creates an installed data folder with a server, a record, a file with this content, and an
 * encrypted value, which a backup must contain.
 */
export async function filled(content: string): Promise<Installed> {
  const place = await installed()
  const { admin } = place.server
  const { body, headers } = await form({ file: file('figures.txt', content) })
  await admin.post('/files', body, { headers })
  await given(admin).lead({ title: 'Backed up' })
  await admin.post('/settings/webhooks', {
    name: 'W',
    url: 'https://example.com/',
    events: ['lead.create.after'],
  })
  return place
}

export interface Said {
  stdout: string
  stderr: string
  code: number
}

/** Runs a command in this process and returns its output and exit code. */
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
    await command().catch(reportFailure)
    return { ...lines, code: Number(process.exitCode) }
  } finally {
    process.exitCode = before
    out.mockRestore()
    err.mockRestore()
  }
}
