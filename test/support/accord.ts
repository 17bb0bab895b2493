// Runs the command line as a separate process in a given folder. The current sources are packed
// once per test thread, in the same way as by `npm run build`.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

const root = fileURLToPath(new URL('../..', import.meta.url))
let packed: string | undefined

/** Returns the entry file of the program. */
function cli(): string {
  if (packed === undefined) {
    const folder = join(root, 'node_modules', '.cache', `accord-${process.pid}-${threadId}`)
    execFileSync(process.execPath, [join(root, 'codegen', 'pack.mjs'), folder])
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    packed = join(folder, 'src', 'cli.js')
  }
  return packed
}

type Environment = Record<string, string>

export interface Finished {
  code: number | null
  stdout: string
  stderr: string
}

export interface ServingLimits {
  /** The limit that `ulimit -n` sets. */
  maxDescriptors?: number
  /** A wrapper program with its options, which runs the command in the same process. */
  under?: string[]
  /** Arguments after the command. */
  args?: string[]
}

function spawnAccord(
  folder: string,
  args: string[],
  environment: Environment,
  { maxDescriptors, under = [] }: ServingLimits = {},
  stdin: 'ignore' | 'pipe' = 'ignore',
): ChildProcess {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('ACCORD_') && !name.startsWith('VITEST'),
  )
  const env = { ...Object.fromEntries(inherited), ...environment }
  const command = [process.execPath, cli(), ...args]
  const limited = maxDescriptors === undefined ? [] : ['sh', '-c', `ulimit -n ${maxDescriptors} && exec "$@"`, 'sh']
  const [program = '', ...rest] = [...under, ...limited, ...command]
  return spawn(program, rest, { cwd: folder, env, stdio: [stdin, 'pipe', 'pipe'] })
}

/** Runs a command until it ends. */
export function accord(
  folder: string,
  args: string[],
  environment: Environment = {},
  input?: string,
  limits: ServingLimits = {},
): Promise<Finished> {
  const child = spawnAccord(folder, args, environment, limits, input === undefined ? 'ignore' : 'pipe')
  child.stdin?.end(input)
  const { said } = listen(child)
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...said })))
}

/** Runs a command and closes its output pipe after the first bytes, as `head -1` does. */
export function accordCutShort(folder: string, args: string[], environment: Environment = {}): Promise<Finished> {
  const child = spawnAccord(folder, args, environment)
  const { said } = listen(child)
  child.stdout?.once('data', () => child.stdout?.destroy())
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...said })))
}

/** Runs a command and kills it when it prints a matching text, as a power cut would. */
export async function accordKilled(
  folder: string,
  args: string[],
  mark: RegExp,
  environment: Environment = {},
): Promise<Finished> {
  const child = spawnAccord(folder, args, environment)
  const { said, until } = listen(child)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  await until(mark)
  child.kill('SIGKILL')
  return { code: await ended, ...said }
}

/** Runs a command and kills it after this time if it has not ended. */
export async function accordKilledAfter(
  folder: string,
  args: string[],
  afterMs: number,
  environment: Environment = {},
): Promise<Finished> {
  const child = spawnAccord(folder, args, environment)
  const { said } = listen(child)
  const timer = setTimeout(() => child.kill('SIGKILL'), afterMs)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return { code, ...said }
}

export interface Serving {
  url: string
  pid: number
  /** The output so far. */
  said: { stdout: string; stderr: string }
  /** Resolves with the exit code when the process ends. */
  ended: Promise<number | null>
  /** Sends a signal and waits. Resolves with the exit code and the time until the end. */
  stop(signal?: NodeJS.Signals): Promise<{ code: number | null; ms: number }>
}

/**
 * Starts a server on a free port, or a worker, and resolves when it prints that it is ready (`url`
 * of `listen` is the signing secret). It has no rate limits, and delays by other tests on the
 * machine do not count as overload.
 */
export async function accordServing(
  folder: string,
  command: 'serve' | 'start' | 'worker' | 'demo' | 'listen',
  environment: Environment = {},
  limits: ServingLimits = {},
): Promise<Serving> {
  const usual = { ACCORD_PORT: '0', ACCORD_ENV: 'test', ACCORD_RATE_LIMIT: 'off' }
  const args = command === 'demo' ? ['demo', '--port', '0'] : [command, ...(limits.args ?? [])]
  const child = spawnAccord(folder, args, { ...usual, ...environment }, limits)
  const { said, until } = listen(child)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const marks = {
    start: /Documentation {2}(http:\S+)\/api\/admin\/documentation\n/,
    demo: /Documentation {2}(http:\S+)\/api\/admin\/documentation\n(?:.*\n)+.*Ctrl-C/,
    serve: /listens on (http:[^\s"]+)/,
    worker: /(The worker is running)/,
    listen: /Signing secret {2}(\S+)\n/,
  }
  const url = await until(marks[command])
  return {
    url,
    pid: child.pid ?? 0,
    said,
    ended,
    stop: async (signal = 'SIGTERM') => {
      const since = performance.now()
      child.kill(signal)
      return { code: await ended, ms: performance.now() - since }
    },
  }
}

function listen(child: ChildProcess) {
  const said = { stdout: '', stderr: '' }
  let scan = (): void => {}
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.on('data', (bytes: Buffer) => {
      said[stream] += bytes
      scan()
    })
  }
  const until = (mark: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      scan = () => {
        const found = (mark.exec(said.stdout) ?? mark.exec(said.stderr))?.[1]
        if (found === undefined) return
        // The output of a busy server is long, so it is not scanned any further.
        scan = () => {}
        resolve(found)
      }
      child.once('close', (code) => reject(new Error(`It ended with ${code}: ${said.stdout}${said.stderr}`)))
      scan()
    })
  return { said, until }
}
