// `accord search rebuild`: indexes every record anew, for an index that disagrees with the records (`accord doctor` tells).
import { rebuildAll } from '../../db/search.ts'
import type { Config } from '../config.ts'
import { withInstalled } from './installed.ts'

export const rebuildSearchCommand = (config: Config): Promise<void> =>
  withInstalled(config, async (store) => console.log(`Indexed ${await rebuildAll(store)} records.`))
