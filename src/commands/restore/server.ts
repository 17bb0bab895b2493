// Restores the database of a backup on a PostgreSQL server. The server replaces its tables in one
// transaction, after the former tables were dumped into the data folder.
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { makeFolder, noRoomFor } from '../../../db/disk.ts'
import type { FoundInstallation } from '../../../db/installation.ts'
import { copyStore, displayUrl, findServerUse, openStore, restoreDump, type Store } from '../../../db/store.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { serverOptions } from '../../installation/data-folder.ts'
import { lookForInstallation } from '../../installation/installation.ts'
import { bestEffort } from '../../kernel/runtime/unavailable.ts'
import { hasTable, sameRows } from '../backup/examine.ts'
import { databaseEntry, type Manifest } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'
import { asideFolder, type DatabaseExchange } from './exchange.ts'

/**
 * Deletes all sessions and password links of the restored database. A user who signed out after the
 * backup thus stays signed out, and an old password link stays invalid.
 */
export async function endSessions(store: Store): Promise<void> {
  for (const table of ['sessions', 'password_resets'] as const)
    if (await hasTable(store, table)) await store.db.deleteFrom(table).execute()
}

/** Throws when the server or the database cannot be used. */
export async function assertUsable(config: Config): Promise<FoundInstallation> {
  const found = await lookForInstallation(config)
  if (found.problem === null) return found
  throw new ConfigError('ACCORD_DATABASE_URL', `is ${displayUrl(config.databaseUrl)}, and ${found.problem}.`)
}

/** Throws when a process of Accord on any machine is connected to the database. */
export async function assertServerNotOpen(config: Config): Promise<void> {
  await assertUsable(config)
  const { isOpen, clients } = await findServerUse(config.databaseUrl)
  if (isOpen)
    throw new CommandError(
      `A server, a worker or another command (connected from ${clients.join(', ')}) has ${displayUrl(config.databaseUrl)} open. Stop it first; nothing was changed.`,
    )
}

export function exchangeOnServer({
  config,
  manifest,
  from,
  unpacked,
  at,
}: {
  config: Config
  manifest: Manifest
  from: string
  /** The path of the dump. */
  unpacked: string
  at: string
}): DatabaseExchange {
  const aside = asideFolder(config.dataDir, at)
  return {
    aside,
    async prepare() {
      await assertServerNotOpen(config)
      try {
        if ((await assertUsable(config)).hasTables) await dumpAside(config, aside)
        const { schema } = await findServerUse(config.databaseUrl)
        await restoreDump(config.databaseUrl, schema, unpacked)
      } catch (cause) {
        rmSync(aside, { recursive: true, force: true })
        if (!(cause instanceof Error) || cause.name !== 'Error') throw cause
        throw new CommandError(`Nothing was changed. ${cause.message}.`, cause)
      }
    },
    setAside: () => undefined,
    async finish() {
      const store = openStore(config.databaseUrl, serverOptions(config))
      try {
        await bestEffort(() => store.dialect.updateStatistics(store.db))
        const snapshot = await store.snapshot()
        try {
          await sameRows({ ...snapshot, dialect: store.dialect }, { called: from, manifest })
        } finally {
          await snapshot.close()
        }
        await endSessions(store)
      } finally {
        await store.close()
      }
    },
  }
}

/** Dumps the present tables into a folder, because a restore never deletes data. */
async function dumpAside(config: Config, folder: string): Promise<void> {
  const store = openStore(config.databaseUrl, serverOptions(config))
  try {
    const size = await store.dialect.copies.sizeOf(store.db as unknown as Kysely<unknown>)
    const problem = noRoomFor(size, config.dataDir)
    if (problem !== null) throw new CommandError(`There is not enough space to keep the present database: ${problem}.`)
    if (!existsSync(folder)) makeFolder(folder, 0o700)
    await (await copyStore(store, join(folder, databaseEntry('postgres')))).close()
  } finally {
    await store.close()
  }
}
