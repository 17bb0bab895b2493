// Opens a database by its url and hands out Kysely with the engine's dialect. The one place that turns a url into an
// engine; migrating is migrate.ts, so that a test can open an image that already is.

import { existsSync } from 'node:fs'
import type { Database as SqliteConnection } from 'better-sqlite3'
import type { Kysely } from 'kysely'
import type { Dialect } from './dialect.ts'
import { searchIndex } from './housekeeping-tables.ts'
import { refresh as index, type Stale } from './search/search-index.ts'
import { createSnapshot, type DatabaseSnapshot } from './snapshots.ts'
import { checkpointSqliteIfUnused, sqliteSideFiles } from './sqlite/backup-copies.ts'
import { maxBusyWaitMs, retryWhileBusy } from './sqlite/busy-retry.ts'
import { createForeignCommitCounter, walBytes } from './sqlite/connection.ts'
import {
  copySqliteSnapshot,
  isSqliteUrl,
  openSqlite,
  openSqliteImage,
  openSqliteReader,
  openSqliteSnapshot,
  sqliteDialect,
  sqliteFile,
  sqliteImage,
} from './sqlite/dialect.ts'
import { createFileIdentity } from './sqlite/file-identity.ts'
import { mergesOf } from './sqlite/full-text-tables.ts'
import { createWalSync } from './sqlite/group-commit/wal-sync.ts'
import { createWriteConnection, type SqliteHealth } from './sqlite/group-commit/write-connection.ts'
import { createWriteQueue } from './sqlite/group-commit/write-queue.ts'
import { kyselySqlite, kyselySqliteConnection } from './sqlite/kysely-driver.ts'
import { createInMemoryMaintenance, createMaintenance } from './sqlite/maintenance/maintenance.ts'
import { createPreparedStatements } from './sqlite/prepared-statements.ts'
import { createReadTransaction } from './sqlite/read-transaction.ts'
import { createFaultLog, type RecordedFault } from './sqlite/storage-faults.ts'
import type { DB } from './tables.gen.ts'

export type { DatabaseSnapshot as Snapshot } from './snapshots.ts'
export type { FaultKind, RecordedFault as Fault } from './sqlite/storage-faults.ts'

export type Db = Kysely<DB>

export interface Store {
  readonly db: Db
  readonly dialect: Dialect
  readonly url: string
  close(): Promise<void>
  /** Why the last write could not be made, or null: no room, no right to, or a disk that fails. Null again with the next that can. */
  health(): SqliteHealth['trouble']
  /** Whether it can by now, after trouble: tries, and answers what `health` is then. */
  retryWrite(): Promise<SqliteHealth['trouble']>
  /** The faults that statements or the maintenance met since the database was opened, and those that last. */
  faults(): RecordedFault[]
  /**
   * Another one than before once anything committed has changed the database, but for this process's own housekeeping-tables.ts: when a commit of this process is answered, and one of
   * another process with the next turn of the event loop or `refresh`. What is kept of committed data is as good as the generation it
   * was read in, asked for before it was read.
   */
  commitGeneration(): number
  /**
   * What is read from now on is at least as new as this moment, or as the one so many milliseconds ago. Without it that of one turn
   * of the event loop may be of its beginning.
   */
  renewReadTransaction(agoMs?: number): void
  /**
   * For what must not be undone by a power cut once somebody has seen it, such as the id of an event: settles when all that could be
   * read until now is on the disk. Null when it is. Rejects when the disk does not confirm it.
   */
  whenDurable(): Promise<void> | null
  /** Looks whether the database file, its log and the folders are those that were opened; off the event loop. Never rejects. */
  verifyFiles(): Promise<void>
  /** The problem found by the last check, in a sentence, or null. While there is one, reads go on and writes are refused. */
  lostFiles(): string | null
  /** Throws when they are lost. */
  assertFiles(): void
  /** Whom to ask whether others are about to write: then what was written waits for them, a little, and shares their commit. */
  onGroupCommit(writes: () => boolean): void
  /**
   * Makes the documents for search of these records what they should be by the commit of the transaction that the caller is in: full
   * text writes down what it has for all that share the commit at once.
   */
  deferToCommit(stale: readonly Stale[]): void
  /** How long the log of changes is, in bytes; 0 in memory. */
  walBytes(): number
  /** Calls the listener right after each commit of this process. Call the function it answers to end that. The listener must not throw. */
  onCommit(listener: () => void): () => void
  /** Does what is due of what writing leaves for later; to be called now and then. Never rejects. */
  maintain(): Promise<void>
  /** The whole database as bytes for `openImage`; tests open one copy each. */
  image(): Promise<Buffer>
  /** The database as it is now, to be read for long while others read and write. Close it: it keeps old pages alive. */
  snapshot(): Promise<DatabaseSnapshot>
}

export interface DatabaseCopy extends DatabaseSnapshot {
  readonly dialect: Dialect
}

export interface StoreOptions {
  /** How long at most writes that come together wait for each other to share one commit, in milliseconds; 0: each has its own. */
  groupMs?: number
  /** How long at most a transaction waits for a lock that another process holds, in milliseconds. */
  waitMs?: number
  /** A disk that takes longer to sync, in milliseconds, never does so on the thread that serves. */
  slowSyncMs?: number
  /** Folders that must stay the same as well: when one was removed or replaced, nothing is written either. */
  folders?: readonly string[]
}

export function openStore(url: string, opening: StoreOptions = {}): Store {
  if (!isSqliteUrl(url)) {
    const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? 'no scheme'
    throw new Error(`Cannot open a database url with ${scheme}; write sqlite:<path> or sqlite::memory:.`)
  }
  return storeOf(openSqlite(url), url, opening)
}

/** Whether opening this url would find something there rather than begin an empty database. */
export function storeExists(url: string): boolean {
  const file = isSqliteUrl(url) ? sqliteFile(url) : null
  return file !== null && existsSync(file)
}

/** The file of a database, null for one in memory. */
export const databaseFile = (url: string): string | null => (isSqliteUrl(url) ? sqliteFile(url) : null)

/** A copy of a database that nobody writes to. Reading it leaves nothing beside it. */
export const openCopy = (file: string): DatabaseCopy => ({
  ...createSnapshot(openSqliteSnapshot(file, maxBusyWaitMs)),
  dialect: sqliteDialect,
})

/**
 * Brings a database that nobody else has open into its one file, with nothing beside it. False, and nothing is done, when a server or
 * another program has it open.
 */
export const checkpointIfUnused = (file: string): boolean => checkpointSqliteIfUnused(file)

/** The file of a database and all that may lie beside it: what has to be moved together. */
export const filesOfDatabase = (file: string): string[] => [...sqliteSideFiles(file), file]

/** A copy in memory, independent of the store the image came from. */
export function openImage(image: Buffer): Store {
  return storeOf(openSqliteImage(image), 'sqlite::memory:')
}

let opened = 0

function storeOf(
  connection: SqliteConnection,
  url: string,
  { groupMs = 10, waitMs = maxBusyWaitMs, slowSyncMs = 100, folders = [] }: StoreOptions = {},
): Store {
  const file = sqliteFile(url)
  const place = file === null ? createFileIdentity([], []) : createFileIdentity([file, ...folders], [`${file}-wal`])
  // No two databases of one process have a generation in common.
  const first = opened++ * 2 ** 32
  const health: SqliteHealth = { trouble: null, commits: first }
  const reading = file === null ? null : openSqliteReader(file)
  const statements = createPreparedStatements(connection)
  const others = createForeignCommitCounter(connection)
  const reader = reading && {
    statements: createPreparedStatements(reading),
    look: createReadTransaction(reading, { onSchema: () => onSchema(), others }),
  }
  const foreign = reader?.look.generation ?? others
  const onSchema = (): void => {
    statements.clear()
    reader?.statements.clear()
  }
  const refresh = (agoMs?: number): void => reader?.look.end(agoMs)
  const faults = createFaultLog()
  let awaits = (): boolean => false
  const listeners = new Set<() => void>()
  const guard = createWriteConnection(connection, statements, {
    health,
    onSchemaChange: onSchema,
    onWrite: refresh,
    onCommit: (segments) => {
      faults.recordWrite()
      sync?.markDirty()
      upkeep.afterCommit(segments)
      for (const listener of listeners) listener()
    },
    foreignCommits: others,
    onForeignCommit: () => sync?.markDirty(),
    assertFiles: place.assert,
    faults,
  })
  const sync =
    file === null
      ? null
      : createWalSync(connection, file, {
          slowMs: slowSyncMs,
          onFailure: (error) => {
            health.trouble = 'uncertain'
            faults.record(error)
          },
        })
  const inside = kyselySqliteConnection<DB>((query) => guard.run(query))
  const writer = createWriteQueue<Stale>(guard, {
    maxGroupMs: groupMs,
    maxWaitMs: waitMs,
    isWriteComing: () => awaits(),
    beforeCommit: (late) => index(inside, late),
    whenDurable: () => sync?.whenDurable() ?? null,
    prepareLog: () => sync?.prepareLog() ?? null,
  })
  const db = kyselySqlite<DB>(writer, { own: statements, reader, faults })
  let confirmedForeign = foreign()
  const snapshots = new Set<DatabaseSnapshot>()
  const merges = mergesOf(searchIndex)
  const upkeep =
    file === null
      ? createInMemoryMaintenance(connection, merges)
      : createMaintenance(connection, file, {
          alone: () => writer.exclusive(),
          merges,
          tended: faults.recordMaintenance,
        })
  const { run: tend } = upkeep

  /** Waits for the one connection, so that no transaction is half-way. */
  async function undisturbed<T>(work: () => T): Promise<T> {
    const { release } = await writer.exclusive()
    try {
      return work()
    } finally {
      release()
    }
  }

  /** What was kept for it can go. */
  function counted(snapshot: DatabaseSnapshot): DatabaseSnapshot {
    const close = async (): Promise<void> => {
      await snapshot.close()
      if (snapshots.delete(own)) void tend()
    }
    const own = { ...snapshot, close }
    snapshots.add(own)
    return own
  }

  return {
    db,
    dialect: sqliteDialect,
    url,
    health: () => health.trouble,
    retryWrite: async () => {
      if (health.trouble === null && !faults.awaitsWrite()) return null
      try {
        await sqliteDialect.tryWrite(db)
        sync?.markDirty()
        await sync?.whenDurable()
        health.trouble = null
        faults.recordWrite()
      } catch (error) {
        const trouble = sqliteDialect.storageFault(error)
        if (trouble === null) throw error
        // Somebody else writes: nothing is known yet.
        if (trouble !== 'busy') health.trouble = trouble
      }
      return health.trouble
    },
    faults: faults.list,
    commitGeneration: () => health.commits + foreign(),
    renewReadTransaction: refresh,
    whenDurable: () => {
      if (sync === null) return null
      // Another process may not have synced what it has committed.
      const now = foreign()
      if (now !== confirmedForeign) sync.markDirty()
      confirmedForeign = now
      return sync.whenDurable()
    },
    verifyFiles: place.verify,
    lostFiles: place.lost,
    assertFiles: place.assert,
    onGroupCommit: (writes) => {
      awaits = writes
    },
    deferToCommit: (stale) => writer.defer(stale),
    walBytes: () => (file === null ? 0 : walBytes(file)),
    onCommit: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    maintain: tend,
    image: () => undisturbed(() => sqliteImage(connection)),
    snapshot: async () => {
      if (file !== null)
        return counted(
          createSnapshot(await retryWhileBusy(() => faults.recording(() => openSqliteSnapshot(file))), faults),
        )
      return undisturbed(() => counted(createSnapshot(copySqliteSnapshot(connection), faults)))
    },
    close: async () => {
      // The last connection that closes takes the log with it, if it is one that can write.
      for (const each of [...snapshots]) await each.close()
      const kept = upkeep.close()
      try {
        refresh()
        await writer.close()
      } finally {
        await kept
        await sync?.close()
        reading?.close()
        connection.close()
      }
    },
  }
}
