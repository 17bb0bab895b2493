// `accord serve` starts a server. `accord start` first installs into an empty data folder or
// migrates an existing one, and prints the addresses.
import type { Config } from '../config/config.ts'
import { openData } from '../installation/data-folder.ts'
import { closeOnSignals, type Running, startServer } from '../server.ts'
import { install, isEmpty, printAdmin, printInboundUrl } from './install/install.ts'

export async function serveCommand(config: Config): Promise<Running> {
  const running = await startServer(config)
  closeOnSignals(running)
  return running
}

export async function startCommand(config: Config): Promise<Running> {
  const store = await openData(config)
  try {
    const isFresh = await isEmpty(store)
    const { done, admin } = await install(config, store)
    for (const sentence of done) console.log(sentence)
    if (isFresh) console.log(`Accord CRM is installed in ${config.dataDir}.`)
    if (admin) printAdmin(admin)
    if (isFresh) printInboundUrl(config)
  } catch (error) {
    await store.close()
    throw error
  }
  const running = await startServer(config, store)
  closeOnSignals(running)
  console.log(`\n  Base URL       ${running.url}`)
  console.log(`  Documentation  ${running.url}/api/admin/documentation\n`)
  return running
}
