// `accord serve` starts a server. `accord start` first installs into an empty data folder or
// migrates an existing one, and prints the addresses and the initial password.
import type { Config } from '../config/config.ts'
import { documentationPath } from '../http/docs/page.ts'
import { signInPath } from '../http/home/links.ts'
import { openData } from '../installation/data-folder.ts'
import { closeOnSignals, type Running, startServer } from '../server.ts'
import { type Installed, install, isEmpty, passwordText } from './install/install.ts'
import { assertServable } from './installed-store.ts'

export async function serveCommand(config: Config): Promise<Running> {
  await assertServable(config)
  const running = await startServer(config)
  closeOnSignals(running)
  return running
}

export async function startCommand(config: Config): Promise<Running> {
  const store = await openData(config)
  let admin: Installed['admin'] = null
  try {
    const isFresh = await isEmpty(store)
    const installed = await install(config, store)
    admin = installed.admin
    if (isFresh) console.log(`Installed Accord CRM into ${config.dataDir}.`)
    else for (const sentence of installed.done) console.log(sentence)
  } catch (error) {
    await store.close()
    throw error
  }
  try {
    const running = await startServer(config, store)
    closeOnSignals(running)
    printAddresses(running.url, admin)
    return running
  } catch (error) {
    // The password is never shown again, so it is printed even when the server fails to start, for
    // example because the port is taken.
    if (admin) console.log(`\n  Sign-in        ${admin.email}\n  Password       ${passwordText(admin)}\n`)
    throw error
  }
}

function printAddresses(url: string, admin: Installed['admin']): void {
  const lines = [
    `  Documentation  ${url}${documentationPath}`,
    `  Sign-in        ${url}${signInPath}${admin === null ? '' : `   as ${admin.email}`}`,
    ...(admin === null ? [] : [`  Password       ${passwordText(admin)}`]),
  ]
  console.log(`\n${lines.join('\n')}\n`)
}
