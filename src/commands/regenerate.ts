// `accord regenerate` runs the code generator if the package contains `openapi.yaml`. Then it
// publishes the contract to the data folder of an installation. `--check` publishes nothing. The
// documentation page shows the new contract after a reload. The server follows it after a restart.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { publishContract } from '../installation/data-folder.ts'
import { listTraces, lookForInstallation } from '../installation/installation.ts'
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
  // Without an installation, there is no documentation to update, so nothing is published here.
  // `accord install` publishes the contract later.
  if (listTraces(config).length === 0 && (await lookForInstallation(config)).state !== 'installed') return
  if (publishContract(config)) {
    console.log(
      `Published the contract to ${config.dataDir}. Reload the documentation; restart the server to follow it.`,
    )
  }
}
