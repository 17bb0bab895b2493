// `accord files clean`: what a server will do by itself once a day.
import type { Config } from '../config.ts'
import { cleanFiles } from '../resources/files/clean.ts'
import { asSystem } from './context.ts'

export async function cleanFilesCommand(config: Config): Promise<void> {
  const { files, bytes } = await asSystem(config, cleanFiles)
  console.log(`Removed ${files} ${files === 1 ? 'file' : 'files'} nobody needs, and the bytes of ${bytes}.`)
}
