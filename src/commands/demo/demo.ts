// `accord demo`: serves an invented company from a database in memory and a temporary folder. The
// server, and the catcher for e-mails and webhooks, listen on the loopback address only. All data
// are removed at the end.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../../db/store.ts'
import { buildApp } from '../../app.ts'
import { type Config, ConfigError, readConfig } from '../../config/config.ts'
import { links } from '../../http/home/links.ts'
import { openData, openPublished } from '../../installation/data-folder.ts'
import { generatedContract } from '../../installation/package-info.ts'
import { ensureSecret } from '../../installation/secret.ts'
import { stopwatch, systemClock } from '../../kernel/runtime/clock.ts'
import { closeOnSignals, type Running, startServer } from '../../server.ts'
import { CommandError } from '../command-error.ts'
import { install } from '../install/install.ts'
import { type Catcher, startCatcher } from './catcher.ts'
import { tellStory } from './story.ts'
import { dayMs, storyDays } from './story-values.ts'

const host = '127.0.0.1'
const admin = { email: 'admin@example.com', password: 'accord-demo' }
/** The exit code after Ctrl-C: 128 plus the number of SIGINT. */
const interrupted = 130
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Demo extends Running {
  catcher: Catcher
  /** The temporary folder. `close` removes it. */
  folder: string
}

export async function demoCommand(options: { port: string }): Promise<void> {
  const elapsedMs = stopwatch()
  const port = portIn(options.port)
  const end = (): never => process.exit(interrupted)
  for (const signal of endings) process.once(signal, end)
  console.log(`Inventing a company with ${storyDays} days of sales…`)
  const demo = await startDemo(port)
  for (const signal of endings) process.off(signal, end)
  closeOnSignals(demo)
  const { url, catcher } = demo
  console.log(`
  Documentation  ${url}${links.documentation}
  Sign-in        ${url}${links.sign_in}   as ${admin.email}
  Password       ${admin.password}   (also of maya@, tomas@ and aiko@brightwater.example)
  E-mails        ${catcher.url}/mails
  Webhooks       ${catcher.url}/webhooks

Ready after ${(elapsedMs() / 1000).toFixed(1)} s. Ctrl-C ends the demo and removes its data.
`)
}

function portIn(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_534)
    throw new CommandError(`--port must be a whole number from 0 to 65534, not "${text}". 0 takes free ports.`)
  return port
}

/**
 * Starts the demo. `close` or the end of the process removes its folder. Tests override settings
 * with `changes`.
 */
export async function startDemo(port: number, changes: Partial<Config> = {}): Promise<Demo> {
  const now = systemClock.now()
  const folder = mkdtempSync(join(tmpdir(), 'accord-demo-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  let catcher: Catcher | undefined
  try {
    const mails = join(folder, 'mails')
    catcher = await startCatcher({ host, port: port === 0 ? 0 : port + 1, mails })
    const config = { ...demoConfig(folder, mails, port), ...changes }
    const store = await openData(config)
    await install(config, store, { folder, at: new Date(now.getTime() - storyDays * dayMs) })
    await fill(config, store, catcher, now)
    const running = await startServer(config, store)
    const close = async (): Promise<void> => {
      await running.close()
      await catcher?.close()
      remove()
      process.off('exit', remove)
    }
    return { ...running, close, catcher, folder }
  } catch (error) {
    await catcher?.close()
    remove()
    process.off('exit', remove)
    if (error instanceof ConfigError && error.message.startsWith('ACCORD_PORT '))
      throw new CommandError(`Port ${port} cannot be used. Choose another one with --port.`, error)
    throw error
  }
}

/** Returns the settings of the demo. The environment is ignored, so that every demo is the same. */
function demoConfig(folder: string, mails: string, port: number): Config {
  return {
    ...readConfig({}).config,
    host,
    port,
    dataDir: join(folder, 'data'),
    databaseUrl: 'sqlite::memory:',
    adminEmail: admin.email,
    adminPassword: admin.password,
    inboundSecret: randomBytes(18).toString('base64url'),
    smtpUrl: `file:${mails}`,
    mailFrom: 'sales@brightwater.example',
    mailFromName: 'Brightwater Instruments',
    mailDomain: 'brightwater.example',
    webhookAllowHttp: true,
    webhookAllowCidrs: ['127.0.0.0/8'],
    groupCommitMs: 0,
  }
}

/** Creates the data of the story through a separate application, whose clock the story sets. */
async function fill(config: Config, store: Store, catcher: Catcher, now: Date): Promise<void> {
  let time = now
  const app = await buildApp({
    // Rate limits are off, because the story calls faster than any limit allows. `production` saves
    // time: it checks only a sample of the replies against the contract.
    config: { ...config, env: 'production', rateFactor: null, campaignRate: 1_000_000, logLevel: 'silent' },
    store,
    secret: (await ensureSecret(config, store)).secret,
    contract: generatedContract(),
    published: openPublished(config),
    clock: { now: () => time },
  })
  try {
    await tellStory({
      app,
      now,
      admin,
      inboundSecret: config.inboundSecret ?? '',
      webhookUrl: `${catcher.url}/webhooks`,
      clock: {
        set: (to) => {
          time = to
        },
      },
    })
  } finally {
    await app.http.close()
  }
}
