// Starts the measured servers, each as a process on its own copy of the filled folder, and reads
// the CPU time and the memory of processes.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fromSource } from '../support/measuring.ts'

export type Name = 'accord' | 'limit'

export interface Server {
  name: Name
  folder: string
  url: string
  pid: number
  /** The URL of the inspector, or null. */
  inspector: string | null
  stop(): Promise<void>
}

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const built = path('../../dist/src/cli.js')
const limit = path('limit.ts')
/** The default base URL of links in the replies of both servers. */
const usualBase = 'http://127.0.0.1:8000'

/** Returns the path of a copy of the folder, which is removed after the run. */
export function copyOf(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'accord-bench-run-'))
  mkdirSync(join(copy, 'data'), { mode: 0o700 })
  // Some file systems can share the blocks of a copy, which is faster for large databases.
  execFileSync('cp', ['-r', '--reflink=auto', join(folder, 'data'), join(folder, 'bench.json'), copy])
  return copy
}

export interface Starting {
  /** The path of another build, or of the sources. The default is the build of this checkout. */
  program?: string
  /** The arguments of node itself. */
  node?: string[]
  base?: string
  /** Without the response cache that older builds have. */
  fresh?: boolean
  /** Settings that override `usual`. */
  settings?: Readonly<Record<string, string>>
  /** The number of API processes that share the port. */
  processes?: number
}

/** The settings of production, without rate limits. */
const usual = {
  ACCORD_ENV: 'production',
  ACCORD_HOST: '127.0.0.1',
  ACCORD_PORT: '0',
  ACCORD_RATE_LIMIT: 'off',
  ACCORD_LOG_LEVEL: 'info',
}

export async function start(
  name: Name,
  folder: string,
  { program = built, node = [], base = usualBase, fresh = false, settings = {}, processes = 1 }: Starting = {},
): Promise<Server> {
  const inherited = Object.entries(process.env).filter(([key]) => !/^(ACCORD_|VITEST|NODE_OPTIONS)/.test(key))
  const command =
    name === 'accord'
      ? [...(program.endsWith('.ts') ? fromSource : []), program, 'serve', ...several(processes)]
      : [...fromSource, limit, '--folder', folder, '--base', base]
  const child = spawn(process.execPath, [...node, ...command], {
    cwd: folder,
    env: {
      ...Object.fromEntries(inherited),
      NODE_ENV: 'production',
      ...usual,
      ACCORD_APP_URL: base,
      ...(fresh && { ACCORD_RESPONSE_CACHE_MB: '0', ACCORD_REPLY_MEMORY_MB: '0' }),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { url, inspector } = await listening(name, child, processes)
  return { name, folder, url, pid: child.pid ?? 0, inspector, stop: () => stop(child) }
}

/** Older builds (`--program`) do not know the option. */
const several = (processes: number): string[] => (processes === 1 ? [] : ['--processes', String(processes)])

/** Resolves with the URLs in the output of the server. Keeps reading and discarding the output. */
function listening(name: Name, child: ChildProcess, processes: number): Promise<Pick<Server, 'url' | 'inspector'>> {
  return new Promise((resolve, reject) => {
    let said = ''
    const look = (bytes: Buffer): void => {
      if (said.length > 100_000) return
      said += bytes
      const url = /listens on (http:[^\s"]+)/.exec(said)?.[1]
      const isComplete = processes === 1 || (said.match(/A process serves/g) ?? []).length === processes
      if (url !== undefined && isComplete) resolve({ url, inspector: /(ws:\/\/\S+)/.exec(said)?.[1] ?? null })
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.once('close', (code) => reject(new Error(`${name} ended with ${code}: ${said}`)))
  })
}

function stop(child: ChildProcess): Promise<void> {
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  child.kill('SIGTERM')
  return closed
}

export const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** Returns the CPU time of a process with all its threads in milliseconds, in steps of 10 ms. */
export function cpuMs(pid: number): number {
  const [user = 0, system = 0] = processorTimes(pid)
  return (user + system) * 10
}

/**
 * Returns CPU times in hundredths of a second: user and system time of the process, and of its
 * ended children.
 */
const processorTimes = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 15)
    .map(Number)

/** Returns the CPU time in milliseconds of a process and all its descendants. */
export function treeCpuMs(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []
    const own = processorTimes(pid).reduce((sum, each) => sum + each, 0) * 10
    return children.reduce((sum, child) => sum + treeCpuMs(Number(child)), own)
  } catch (error) {
    // The process has ended, and its time is added to that of its parent.
    if (!['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) throw error
    return 0
  }
}

/** Returns the resident memory of a process in megabytes, now and its maximum. */
export function memoryMb(pid: number): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  return { now: of('VmRSS'), most: of('VmHWM') }
}

/** Waits until the server is idle, or at most this many seconds. */
export async function quiet({ pid }: Server, atMost: number): Promise<void> {
  for (let second = 0; second < atMost; second++) {
    const before = cpuMs(pid)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    if (cpuMs(pid) - before <= 50) return
  }
}
