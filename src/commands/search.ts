// `accord search rebuild`: indexes every record anew, for an index that disagrees with the records (`accord doctor` tells).
import type { Config } from '../config/config.ts'
import { rebuildSearch } from '../resources/system/search-rebuild.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'

export const rebuildSearchCommand = (config: Config): Promise<void> =>
  asSystem(config, async (ctx) => {
    const count = await rebuildSearch(ctx)
    if (count === null) throw new CommandError('Another process rebuilds the search index. Wait until it is done.')
    console.log(`Indexed ${count} records.`)
  })
