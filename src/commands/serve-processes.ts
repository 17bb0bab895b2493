// `accord serve --processes <number>`: several API processes that share one port, on one machine.
import { engineOf } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { openData } from '../installation/data-folder.ts'
import { assertConnections } from '../processes/connections.ts'
import { isMember, joinSupervisor } from '../processes/member.ts'
import { superviseProcesses } from '../processes/supervisor.ts'
import { closeOnSignals, startServer } from '../server.ts'
import { CommandError, reportFailure } from './command-error.ts'
import { assertServable } from './installed-store.ts'
import { serveCommand } from './serve.ts'

export interface ServeOptions {
  processes: string
  /** The number of this process, from 1. Set by the supervisor. */
  process?: string
}

const maxProcesses = 64

export async function serveProcessesCommand(read: () => Config, options: ServeOptions): Promise<void> {
  if (isMember()) return serveAsMember(read, options)
  const config = read()
  const count = readCount(config, options.processes)
  if (count === 1) await serveCommand(config)
  else {
    await assertServable(config)
    superviseProcesses(config, count)
  }
}

/**
 * Exits explicitly after an error, because the channel to the supervisor would keep the process
 * alive.
 */
async function serveAsMember(read: () => Config, { processes, process: number }: ServeOptions): Promise<void> {
  try {
    await startMember(read(), Number(processes), Number(number))
  } catch (error) {
    reportFailure(error)
    process.exit(1)
  }
}

/** Starts one of the processes. Only the first process runs the background work. */
async function startMember(config: Config, count: number, number: number): Promise<void> {
  const store = await openData(config)
  try {
    await assertConnections(config, store, count)
  } catch (error) {
    await store.close()
    throw error
  }
  const running = await startServer({ ...config, worker: config.worker && number === 1 }, store)
  joinSupervisor(running.app, number, closeOnSignals(running))
}

function readCount({ databaseUrl }: Config, text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || count < 1 || count > maxProcesses)
    throw new CommandError(`--processes must be a whole number from 1 to ${maxProcesses}, not "${text}".`)
  if (count > 1 && engineOf(databaseUrl) !== 'postgres')
    throw new CommandError(
      `--processes ${count} needs PostgreSQL, because SQLite has one writer. Set ACCORD_DATABASE_URL, or leave --processes out.`,
    )
  return count
}
