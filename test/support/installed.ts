// An installed data folder with a server of this process on it, for commands that work on folders:
// backup, restore, doctor. Commands are called as functions, and their output and exit code are
// returned.
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

/** The secret that every server of the tests encrypts with. */
export const testSecret = 'test secret of at least thirty-two characters'

export interface Folder {
  config: Config
  dataDir: string
  store: Store
  /** Closes the store; the folder stays. */
  stop(): Promise<void>
  close(): Promise<void>
}

export interface Installed extends Folder {
  server: TestServer
}

/** Installed, without a server. */
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
 * For commands that run in processes of their own, as `accord install` leaves it: the data is in
 * its folder `data`.
 */
export async function workingFolder(): Promise<string> {
  const { dataDir, stop } = await installedFolder()
  await stop()
  return dirname(dataDir)
}

/** The same with a server on it. */
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
 * The same with everything that a backup must bring back: a record, a file of these bytes, and an
 * encrypted value.
 */
export async function filled(content: string): Promise<Installed> {
  const place = await installed()
  const { admin } = place.server
  const { body, headers } = await form({ file: file('figures.txt', content) })
  await admin.post('/files', body, { headers })
  await given(admin).lead({ title: 'Backed up' })
  await admin.post('/settings/webhooks', {
    name: 'W',
    end_point: 'https://example.com/',
    events: ['lead.create.after'],
  })
  return place
}

export interface Said {
  stdout: string
  stderr: string
  code: number
}

/** Runs a command in this process, as the command line does. */
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
