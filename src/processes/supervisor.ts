// Starts several API processes that share one port (node:cluster), restarts a process that has
// ended, and stops all processes. The supervisor opens no database, so a database fault cannot end
// it.
import cluster, { type Worker as ClusterWorker } from 'node:cluster'
import { AggregatorRegistry } from 'prom-client'
import type { Config } from '../config/config.ts'
import { createLog } from '../http/access-log.ts'
import { systemClock } from '../kernel/runtime/clock.ts'
import type { FromSupervisor, ToSupervisor } from './messages.ts'

/** The delay in milliseconds before a process starts again. Each early end doubles the delay. */
const backOffMs = { min: 1_000, max: 30_000 }
/**
 * A process that ended after at least this number of milliseconds starts again with the minimum
 * delay.
 */
const stableMs = 60_000

/** A process and its restarts. */
interface Place {
  /** Counted from 1. The first process also runs the background work. */
  readonly number: number
  worker: ClusterWorker
  startedAt: number
  /** Whether the current process serves. */
  isServing: boolean
  /** The number of times in a row that the process ended soon after its start. */
  failures: number
  timer?: NodeJS.Timeout
}

/**
 * Runs `count` processes with the arguments of this process. Returns after the start of the first
 * process. The other processes start when the first process serves, so that only one process
 * migrates the database or prints an error in the settings. This process ends after all others.
 */
export function superviseProcesses(config: Config, count: number): void {
  const supervisor = new Supervisor(config, count)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => supervisor.onSignal(signal))
  supervisor.start()
}

class Supervisor {
  readonly #log: ReturnType<typeof createLog>
  readonly #count: number
  readonly #places: Place[] = []
  readonly #metrics = new AggregatorRegistry()
  /** Whether any process has served. */
  #hasServed = false
  #isClosing = false
  #exitCode = 0

  constructor(config: Config, count: number) {
    this.#log = createLog(config)
    this.#count = count
    cluster.on('message', (worker, message: ToSupervisor) => this.#onMessage(worker, message))
    cluster.on('exit', (worker, code, signal) => this.#onExit(worker, code, signal))
  }

  start(): void {
    this.#places.push(this.#newPlace(1))
  }

  /**
   * Closes all processes. A second signal ends the supervisor at once; the processes then end, too,
   * because their channel closes.
   */
  onSignal(signal: NodeJS.Signals): void {
    if (this.#isClosing) process.exit(1)
    this.#log.info({ signal }, 'Closing all processes.')
    this.#close(0)
  }

  #newPlace(number: number): Place {
    const state = { isServing: false, failures: 0 }
    return { number, worker: startProcess(number), startedAt: systemClock.now().getTime(), ...state }
  }

  #startAgain(place: Place): void {
    place.worker = startProcess(place.number)
    place.startedAt = systemClock.now().getTime()
  }

  #onMessage(worker: ClusterWorker, message: ToSupervisor): void {
    const place = this.#placeOf(worker)
    if (place === undefined) return
    if (message.type === 'accord:serving') this.#onServing(place)
    if (message.type === 'accord:metrics') {
      const { id } = message
      const reply = (text: string | null): void => tell(worker, { type: 'accord:metrics-text', id, text })
      this.#metrics.clusterMetrics().then(reply, () => reply(null))
    }
  }

  #onServing(place: Place): void {
    place.isServing = true
    this.#hasServed = true
    this.#log.info(
      { process: place.number, of: this.#count, process_pid: place.worker.process.pid },
      'A process serves.',
    )
    if (this.#isClosing) tell(place.worker, { type: 'accord:stop' })
    else if (this.#places.length === 1)
      for (let number = 2; number <= this.#count; number++) this.#places.push(this.#newPlace(number))
  }

  #onExit(worker: ClusterWorker, code: number | null, signal: string | null): void {
    const place = this.#placeOf(worker)
    if (place === undefined) return
    const hadWork = place.isServing
    place.isServing = false
    if (this.#isClosing) {
      if (hadWork) this.#exitCode = Math.max(this.#exitCode, code ?? 1)
      this.#endAfterLast()
      return
    }
    // No process has served yet, so a restart would fail, too. The process has printed the reason.
    if (!this.#hasServed) {
      this.#close(code || 1)
      return
    }
    const isStable = systemClock.now().getTime() - place.startedAt >= stableMs
    place.failures = isStable ? 0 : place.failures + 1
    const delay = Math.min(backOffMs.min * 2 ** Math.max(0, place.failures - 1), backOffMs.max)
    this.#log.error(
      { process: place.number, process_pid: worker.process.pid, code, signal, seconds: delay / 1_000 },
      'A process has ended; it starts again after a delay.',
    )
    place.timer = setTimeout(() => this.#startAgain(place), delay)
  }

  #close(code: number): void {
    this.#isClosing = true
    this.#exitCode = code
    for (const { worker, isServing, timer } of this.#places) {
      clearTimeout(timer)
      if (isServing) tell(worker, { type: 'accord:stop' })
      // A process that does not serve yet has nothing to finish.
      else worker.process.kill('SIGTERM')
    }
    this.#endAfterLast()
  }

  #endAfterLast(): void {
    const isOver = this.#places.every(({ worker }) => worker.isDead())
    if (isOver) process.exit(this.#exitCode)
  }

  #placeOf(worker: ClusterWorker): Place | undefined {
    return this.#places.find((place) => place.worker.id === worker.id)
  }
}

/** Passes the number as an argument, so that tools such as `ps` show it. */
function startProcess(number: number): ClusterWorker {
  cluster.setupPrimary({ args: [...process.argv.slice(2), '--process', String(number)] })
  return cluster.fork()
}

/** Sends a message. Does nothing for a process that has ended, which `#onExit` handles. */
function tell(worker: ClusterWorker, message: FromSupervisor): void {
  if (worker.isConnected()) worker.process.send(message, undefined, undefined, () => undefined)
}
