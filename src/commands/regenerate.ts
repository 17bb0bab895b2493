// `accord regenerate`: runs the generator, then publishes the contract to the data folder, so that
// the documentation of a running server shows it on the next reload.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findInstallation } from '../../db/installation.ts'
import type { Config } from '../config/config.ts'
import { publishContract } from '../installation/data-folder.ts'
import { listTraces } from '../installation/installation.ts'
import { packageRoot } from '../installation/package-info.ts'

export async function regenerateCommand(
  readConfig: () => Config,
  { check = false }: { check?: boolean },
): Promise<void> {
  if (existsSync(join(packageRoot, 'openapi.yaml'))) {
    const { main } = await import('../../codegen/regenerate.ts')
    const code = await main(check ? ['--check'] : [])
    if (code !== 0) {
      process.exitCode = code
      return
    }
  }
  if (check) return
  const config = readConfig()
  // Without an installation there is no documentation to refresh; `accord install` will publish it.
  if (listTraces(config).length === 0 && findInstallation(config.databaseUrl).state !== 'installed') return
  if (publishContract(config)) {
    console.log(
      `Published the contract to ${config.dataDir}. Reload the documentation; restart the server to follow it.`,
    )
  }
}
