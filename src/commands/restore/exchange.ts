// The last step of `accord restore`: moves the present data aside, and then moves the unpacked data
// into their place. A mark in the data folder keeps servers and commands from opening a
// half-restored folder, even after an interruption.
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeFolder, syncPath } from '../../../db/disk.ts'
import { filesOfDatabase } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { restoringMark } from '../../installation/data-folder.ts'
import { installedMark, markInstalled } from '../../installation/installation.ts'
import { waitingDatabase } from '../../installation/interrupted-restores.ts'
import { newOwnerId, ownerState } from '../../kernel/runtime/process-identity.ts'
import { copyFile } from '../backup/bytes.ts'
import { backupEntries, contractNames } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'

/** The steps that exchange the database, in the order in which they run. */
export interface DatabaseExchange {
  /** The folder that gets the former database. */
  aside: string
  /** Runs before anything in the data folder is moved. After a failure nothing is changed. */
  prepare(): Promise<void>
  setAside(): void
  /** Moves the unpacked database file into its place, or verifies the database on the server. */
  finish(): Promise<void>
}

interface Exchange {
  database: DatabaseExchange
  /** The folder with the unpacked and verified backup. It is inside the data folder. */
  folder: string
  /** Whether the folder of files stays. True when the contents of files are in a bucket. */
  keepsFiles: boolean
  at: string
  /** The id of the installation that the backup was made from. */
  installation: string | null
  /**
   * Whether the present secret stays. True when the backup has no secret and was made with the
   * present secret.
   */
  staysSecret: boolean
  isForced: boolean
}

/**
 * Replaces the present data with the unpacked data. Returns the paths with the former data, joined
 * by "and"; null when there were no data.
 */
export async function exchangeData(config: Config, wanted: Exchange): Promise<string | null> {
  const { database, folder, at, keepsFiles, staysSecret } = wanted
  const { dataDir } = config
  const own = [
    ...(keepsFiles ? [] : [backupEntries.files]),
    ...(staysSecret ? [] : [backupEntries.secret]),
    ...contractNames,
  ]
  const release = await lockDataFolder(config, wanted.isForced, async () => {
    for (const name of own) assertNotMounted(join(dataDir, name))
    await database.prepare()
  })
  const aside = asideFolder(dataDir, at)
  for (const name of own) moveAside(join(dataDir, name), aside)
  database.setAside()
  for (const name of own.filter((each) => existsSync(join(folder, each))))
    renameSync(join(folder, name), join(dataDir, name))
  await database.finish()
  if (wanted.installation === null) rmSync(installedMark(config), { force: true })
  else markInstalled(config, wanted.installation)
  for (const path of new Set([aside, database.aside, dirname(database.aside), dataDir]))
    if (existsSync(path)) syncPath(path)
  release()
  const found = [...new Set([aside, database.aside])].filter((path) => existsSync(path))
  return found.length > 0 ? found.join(' and ') : null
}

/**
 * Locks the data folder, runs `prepare`, and returns the function that unlocks the folder. When
 * `prepare` fails, unlocks the folder.
 */
async function lockDataFolder(config: Config, isForced: boolean, prepare: () => Promise<void>): Promise<() => void> {
  const mark = restoringMark(config)
  const isHalfWay = existsSync(mark)
  // After a power cut the mark may be empty. No process owns an empty mark.
  const other = isHalfWay ? readFileSync(mark, 'utf8').trim() : ''
  const life = other === '' ? 'gone' : ownerState(other)
  if (life === 'alive') throw new CommandError(`Another restore is running on ${config.dataDir}.`)
  if (life === 'unknown' && !isForced)
    throw new CommandError(
      `Another restore is running on ${config.dataDir}, or was interrupted on another machine or in another container. If you are sure that it is not running, run this again with --force.`,
    )
  writeFileSync(mark, `${newOwnerId()}\n`, { mode: 0o600 })
  for (const path of [mark, config.dataDir]) syncPath(path)
  const release = (): void => {
    rmSync(mark, { force: true })
    syncPath(config.dataDir)
  }
  try {
    await prepare()
  } catch (error) {
    // The mark stays when it is from an earlier, interrupted restore, because that restore is still
    // unfinished.
    if (!isHalfWay) release()
    throw error
  }
  return release
}

/**
 * Throws when the path is a mount point, because a mount point cannot be renamed. Called before the
 * first rename.
 */
export function assertNotMounted(path: string): void {
  if (existsSync(path) && statSync(path).dev !== statSync(dirname(path)).dev)
    throw new CommandError(
      `${path} is a disk of its own and cannot be moved aside. Use another ACCORD_DATA_DIR; nothing was changed.`,
    )
}

export function moveAside(path: string, folder: string): void {
  if (!existsSync(path)) return
  makeFolder(folder, 0o700)
  renameSync(path, join(folder, basename(path)))
}

export const asideFolder = (parent: string, at: string): string => join(parent, `before-restore-${at}`)

/** Returns the steps that exchange a database file. */
export function exchangeFile(unpacked: string, database: string, at: string, stopIfOpen: () => void): DatabaseExchange {
  // The database may be on another disk than the data folder. The new file is first copied beside
  // the present database, so that the final step is a rename.
  const waiting = waitingDatabase(database, at)
  const aside = asideFolder(dirname(database), at)
  return {
    aside,
    async prepare() {
      assertNotMounted(database)
      stopIfOpen()
      makeFolder(dirname(database), 0o700)
      await move(unpacked, waiting)
    },
    setAside() {
      for (const path of filesOfDatabase(database)) moveAside(path, aside)
    },
    finish: async () => renameSync(waiting, database),
  }
}

async function move(from: string, to: string): Promise<void> {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyFile(from, to)
  }
}
