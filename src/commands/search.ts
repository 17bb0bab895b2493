// `accord search rebuild`: rebuilds the search index. `accord doctor` recommends it when the index
// does not match the records.
import type { Config } from '../config/config.ts'
import { rebuildSearchOnline } from '../resources/system/search-rebuild.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { type ReportOptions, report, tellPhase } from './report.ts'

export const rebuildSearchCommand = (config: Config, options: ReportOptions = {}): Promise<void> =>
  asSystem(config, async (ctx) => {
    tellPhase('Reading all records…')
    const count = await rebuildSearchOnline(ctx)
    if (count === null) throw new CommandError('Another process is rebuilding the search index. Wait until it is done.')
    report(options, { indexed: count }, [`Indexed ${count} records.`])
  })
