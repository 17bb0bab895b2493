// `accord install --new`: moves the installation in the data folder aside and deletes nothing. The
// mark `installed` is moved last. After an interrupted move, the mark thus keeps every command from
// creating a new database.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../../../db/disk.ts'
import { databaseFile, displayUrl, filesOfDatabase, isInMemory } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import {
  backupNote,
  backupsFolder,
  filesFolder,
  installedMark,
  installingMark,
  lookForInstallation,
  restoringMark,
  secretFile,
} from '../../installation/installation.ts'
import { stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { backupName, contractNames } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'
import { assertNotMounted, moveAside } from '../restore/exchange.ts'
import { assertNotOpen } from '../restore/restore.ts'

/**
 * Moves the data of the present installation into new folders and returns these folders. Returns an
 * empty list when there were no data.
 */
export async function moveInstallationAside(config: Config): Promise<string[]> {
  if (isInMemory(config.databaseUrl) || !existsSync(config.dataDir)) return []
  const database = databaseFile(config.databaseUrl)
  if (database === null) await assertEmptyServer(config)
  if (existsSync(restoringMark(config)))
    throw new CommandError('A restore of this data folder is unfinished. Finish it first.')
  const own = [
    filesFolder(config),
    backupsFolder(config),
    backupNote(config),
    secretFile(config),
    ...contractNames.map((name) => join(config.dataDir, name)),
    installingMark(config),
  ]
  // The copies of the database that migrations made lie beside the database.
  const beside = database === null ? [] : [...filesOfDatabase(database), ...copiesBeside(database, config)]
  for (const path of [...own, ...(database === null ? [] : [database])]) assertNotMounted(path)
  // An empty database file is not opened, because SQLite would delete the log beside the file.
  if (database !== null && statSync(database, { throwIfNoEntry: false })?.size) assertNotOpen(database)
  const name = `before-new-${backupName(stamp(systemClock.now()))}`
  const [aside, asideDatabase] = [join(config.dataDir, name), join(dirname(database ?? config.dataDir), name)]
  for (const path of beside) moveAside(path, asideDatabase)
  for (const path of [...own, installedMark(config)]) moveAside(path, aside)
  const moved = [...new Set([aside, asideDatabase])].filter((path) => existsSync(path))
  for (const path of moved) for (const each of [path, dirname(path)]) syncPath(each)
  return moved
}

/** Throws if the database on the server has tables, because Accord cannot move them aside. */
async function assertEmptyServer(config: Config): Promise<void> {
  const { hasTables, problem } = await lookForInstallation(config)
  const shown = displayUrl(config.databaseUrl)
  if (problem !== null) throw new CommandError(`ACCORD_DATABASE_URL is ${shown}, and ${problem}.`)
  if (hasTables)
    throw new CommandError(
      `The database ${shown} contains an installation, which cannot be moved aside. Create an empty database, set ACCORD_DATABASE_URL to it, and run this again. Nothing was changed.`,
    )
}

function copiesBeside(database: string, config: Config): string[] {
  const folder = join(dirname(database), basename(backupsFolder(config)))
  if (folder === backupsFolder(config) || !existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => /^accord-.*\.db$/.test(name))
    .map((name) => join(folder, name))
}
