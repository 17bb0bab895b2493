// The moment of `accord restore`: what is there goes aside and what was unpacked takes its place, each by a rename. A mark in the data
// folder keeps every server and command out meanwhile, and stays when it was cut off, so that nobody works on half of each.
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeFolder, syncPath } from '../../../db/disk.ts'
import { filesOfDatabase } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { restoringMark } from '../../installation/data-folder.ts'
import { installedMark, markInstalled } from '../../installation/installation.ts'
import { newOwnerId, ownerState } from '../../kernel/runtime/process-identity.ts'
import { copyFile } from '../backup/bytes.ts'
import { backupEntries, contractNames } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'

interface Exchange {
  database: string
  /** What was unpacked and examined, in the data folder. */
  folder: string
  at: string
  /** Whose backup it is. */
  installation: string | null
  /** The present secret is that of the backup, which holds none. */
  staysSecret: boolean
  isForced: boolean
  /** Throws when the database is in use. */
  stopIfOpen(): void
}

/** Answers where the former data are; null when there were none. */
export async function exchangeData(config: Config, wanted: Exchange): Promise<string | null> {
  const { database, folder, at, staysSecret } = wanted
  const { dataDir } = config
  const own = [backupEntries.files, ...(staysSecret ? [] : [backupEntries.secret]), ...contractNames]
  // The database may lie elsewhere, on another disk: its new file waits beside it.
  const waiting = join(dirname(database), `.restore-${at}.db.partial`)
  const release = await lockDataFolder(config, wanted.isForced, async () => {
    for (const path of [...own.map((name) => join(dataDir, name)), database]) assertNotMounted(path)
    wanted.stopIfOpen()
    makeFolder(dirname(database), 0o700)
    await move(join(folder, backupEntries.database), waiting)
  })
  const aside = join(dataDir, `before-restore-${at}`)
  const asideDatabase = join(dirname(database), `before-restore-${at}`)
  for (const name of own) moveAside(join(dataDir, name), aside)
  for (const path of filesOfDatabase(database)) moveAside(path, asideDatabase)
  for (const name of own.filter((each) => existsSync(join(folder, each))))
    renameSync(join(folder, name), join(dataDir, name))
  renameSync(waiting, database)
  if (wanted.installation === null) rmSync(installedMark(config), { force: true })
  else markInstalled(config, wanted.installation)
  for (const path of new Set([aside, asideDatabase, dirname(database), dataDir])) if (existsSync(path)) syncPath(path)
  release()
  const found = [...new Set([aside, asideDatabase])].filter((path) => existsSync(path))
  return found.length > 0 ? found.join(' and ') : null
}

/** Keeps everybody out of the data folder, then does what may still fail; when it does, lets them in again. */
async function lockDataFolder(config: Config, isForced: boolean, prepare: () => Promise<void>): Promise<() => void> {
  const mark = restoringMark(config)
  const isHalfWay = existsSync(mark)
  // A power cut may have left it empty.
  const other = isHalfWay ? readFileSync(mark, 'utf8').trim() : ''
  const life = other === '' ? 'gone' : ownerState(other)
  if (life === 'alive') throw new CommandError(`Another restore is at work on ${config.dataDir}.`)
  if (life === 'unknown' && !isForced)
    throw new CommandError(
      `Another restore is at work on ${config.dataDir}, or was cut off on another machine or in another container. When you know that it is at work no more, run this again with --force.`,
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
    // One that was cut off before is still half-way.
    if (!isHalfWay) release()
    throw error
  }
  return release
}

/** A place that another disk is mounted at cannot be moved aside: better known before than half-way. */
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

async function move(from: string, to: string): Promise<void> {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyFile(from, to)
  }
}
