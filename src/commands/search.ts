// `accord search rebuild`: rebuilds the search index. `accord doctor` recommends it when the index
// does not match the records.
import type { Config } from '../config/config.ts'
import { rebuildSearchOnline } from '../resources/system/search-rebuild.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'

export const rebuildSearchCommand = (config: Config): Promise<void> =>
  asSystem(config, async (ctx) => {
    const count = await rebuildSearchOnline(ctx)
    if (count === null) throw new CommandError('Another process is rebuilding the search index. Wait until it is done.')
    console.log(`Indexed ${count} records.`)
  })
