// `accord files clean`: runs the cleanup of files that a server runs once a day.
import type { Config } from '../config/config.ts'
import { cleanFiles, trashDays } from '../resources/files/clean-up.ts'
import { asSystem } from './context.ts'

export async function cleanFilesCommand(config: Config, options: { all?: boolean }): Promise<void> {
  const done = await asSystem(config, (ctx) => cleanFiles(ctx, options))
  const count = (number: number): string => `${number} ${number === 1 ? 'file' : 'files'}`
  console.log(`Removed ${count(done.files)} that no record uses, and moved the contents of ${done.bytes} to the trash.`)
  if (done.deleted > 0) console.log(`Deleted ${count(done.deleted)} from the trash, after ${trashDays} days there.`)
  if (done.broughtBack > 0)
    console.log(`Restored ${count(done.broughtBack)} from the trash, because records refer to them.`)
  if (done.left > 0) {
    console.error(
      `Kept ${count(done.left)} that belong to no record, because they are more than a tenth of all files. Check that the database is the right one, then run: accord files clean --all`,
    )
    process.exitCode = 1
  }
}
