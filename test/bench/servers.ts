// The servers under measurement, each a process on its own copy of the filled folder, and the
// system's figures for a process: its processor time and its memory.
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
  /** The address of its inspector, when it has one. */
  inspector: string | null
  stop(): Promise<void>
}

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const built = path('../../dist/src/cli.js')
const limit = path('limit.ts')
/** The start of links in both servers' replies, unless a test sets another. */
const usualBase = 'http://127.0.0.1:8000'

/** A copy that is removed after the run. */
export function copyOf(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'accord-bench-run-'))
  mkdirSync(join(copy, 'data'), { mode: 0o700 })
  // Databases are large, and some file systems can share the blocks of a copy.
  execFileSync('cp', ['-r', '--reflink=auto', join(folder, 'data'), join(folder, 'bench.json'), copy])
  return copy
}

export interface Starting {
  /** Another build of the program, or its sources; by default the build of this checkout. */
  program?: string
  /** Arguments of node itself, such as those of a profile. */
  node?: string[]
  base?: string
  /** Without the response cache that older builds have. */
  fresh?: boolean
  /** Settings that differ from the usual ones. */
  settings?: Readonly<Record<string, string>>
  /** API processes that share the port. */
  processes?: number
}

/** Production settings, without rate limits. */
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

/** Reads the output of the server, as a supervisor would, and drops it. */
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

/**
 * Processor milliseconds of a process, all threads included; the system counts in hundredths of a
 * second.
 */
export function cpuMs(pid: number): number {
  const [user = 0, system = 0] = processorTimes(pid)
  return (user + system) * 10
}

/** Hundredths of a second: of the process (user, system), and of its ended children. */
const processorTimes = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 15)
    .map(Number)

/** Processor milliseconds of a process and of all processes that it has started. */
export function treeCpuMs(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []
    const own = processorTimes(pid).reduce((sum, each) => sum + each, 0) * 10
    return children.reduce((sum, child) => sum + treeCpuMs(Number(child)), own)
  } catch (error) {
    // The process has ended since, and its parent has its time.
    if (!['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) throw error
    return 0
  }
}

/** Resident megabytes of a process, now and at most. */
export function memoryMb(pid: number): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  return { now: of('VmRSS'), most: of('VmHWM') }
}

/**
 * Waits until the server is idle, as it is some time after its start, or until so many seconds have
 * passed.
 */
export async function quiet({ pid }: Server, atMost: number): Promise<void> {
  for (let second = 0; second < atMost; second++) {
    const before = cpuMs(pid)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    if (cpuMs(pid) - before <= 50) return
  }
}
