// `accord files clean`: runs the cleanup of files that a server runs once a day.
import type { Config } from '../config/config.ts'
import { cleanFiles, trashDays } from '../resources/files/clean-up.ts'
import { asSystem } from './context.ts'
import { counted, type ReportOptions, report } from './report.ts'

export async function cleanFilesCommand(config: Config, options: { all?: boolean } & ReportOptions): Promise<void> {
  const done = await asSystem(config, (ctx) => cleanFiles(ctx, options))
  const { files, bytes, deleted, broughtBack, left } = done
  const count = (number: number): string => counted(number, 'file')
  report(options, { removed: files, moved_to_trash: bytes, deleted_from_trash: deleted, restored: broughtBack, left }, [
    `Removed ${count(files)} that no record uses, and moved the contents of ${bytes} to the trash.`,
    ...(deleted > 0 ? [`Deleted ${count(deleted)} from the trash, after ${trashDays} days there.`] : []),
    ...(broughtBack > 0 ? [`Restored ${count(broughtBack)} from the trash, because records refer to them.`] : []),
  ])
  if (left > 0) {
    console.error(
      `Kept ${count(left)} that belong to no record, because they are more than a tenth of all files. Check that the database is the right one, then run: accord files clean --all`,
    )
    process.exitCode = 1
  }
}
