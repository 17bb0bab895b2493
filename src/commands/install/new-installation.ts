// `accord install --new`: moves the installation in the data folder aside and deletes nothing.
// `installed` is moved last: if the move is interrupted, every command still refuses to create a
// database.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../../../db/disk.ts'
import { databaseFile, filesOfDatabase } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import {
  backupNote,
  backupsFolder,
  filesFolder,
  installedMark,
  installingMark,
  restoringMark,
  secretFile,
} from '../../installation/installation.ts'
import { stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { backupName, contractNames } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'
import { assertNotMounted, moveAside } from '../restore/exchange.ts'
import { assertNotOpen } from '../restore/restore.ts'

/** Returns the folders that hold the former data; empty when there were none. */
export function moveInstallationAside(config: Config): string[] {
  const database = databaseFile(config.databaseUrl)
  if (database === null || !existsSync(config.dataDir)) return []
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
  // The copies made before migrations lie beside the database.
  const beside = [...filesOfDatabase(database), ...copiesBeside(database, config)]
  for (const path of [...own, database]) assertNotMounted(path)
  // Skips an empty file: opening it would make SQLite delete the log beside it.
  if (statSync(database, { throwIfNoEntry: false })?.size) assertNotOpen(database)
  const name = `before-new-${backupName(stamp(systemClock.now()))}`
  const [aside, asideDatabase] = [join(config.dataDir, name), join(dirname(database), name)]
  for (const path of beside) moveAside(path, asideDatabase)
  for (const path of [...own, installedMark(config)]) moveAside(path, aside)
  const moved = [...new Set([aside, asideDatabase])].filter((path) => existsSync(path))
  for (const path of moved) for (const each of [path, dirname(path)]) syncPath(each)
  return moved
}

function copiesBeside(database: string, config: Config): string[] {
  const folder = join(dirname(database), basename(backupsFolder(config)))
  if (folder === backupsFolder(config) || !existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => /^accord-.*\.db$/.test(name))
    .map((name) => join(folder, name))
}
