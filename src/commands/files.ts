// `accord files clean`: what a server does by itself once a day.
import type { Config } from '../config/config.ts'
import { cleanFiles, trashDays } from '../resources/files/clean.ts'
import { asSystem } from './context.ts'

export async function cleanFilesCommand(config: Config, options: { all?: boolean }): Promise<void> {
  const done = await asSystem(config, (ctx) => cleanFiles(ctx, options))
  const count = (number: number): string => `${number} ${number === 1 ? 'file' : 'files'}`
  console.log(`Removed ${count(done.files)} nobody needs, and moved the bytes of ${done.bytes} to the trash.`)
  if (done.deleted > 0) console.log(`Deleted ${count(done.deleted)} that were in the trash for ${trashDays} days.`)
  if (done.broughtBack > 0)
    console.log(`Brought ${count(done.broughtBack)} back from the trash: records refer to them.`)
  if (done.left > 0) {
    console.error(
      `Left ${count(done.left)} alone that belong to no record: they are more than a tenth of all. Check that the database is the right one; then run: accord files clean --all`,
    )
    process.exitCode = 1
  }
}
