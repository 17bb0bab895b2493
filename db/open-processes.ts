// Finds the processes that have a file open, so that a message can name the one to end.
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'

/** The maximum number of processes that a message names. */
const maxNamed = 5

/**
 * Returns the other processes that have the file open, as `node (process 4711)`. The result is
 * empty on systems other than Linux, and lacks processes of other users and containers.
 */
export function processesWithOpen(file: string): string[] {
  try {
    const path = realpathSync(file)
    const others = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    const holders = others.filter((pid) => hasOpen(pid, path))
    return holders.slice(0, maxNamed).map((pid) => `${programOf(pid)} (process ${pid})`)
  } catch {
    return []
  }
}

function hasOpen(pid: string, path: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((descriptor) => linkOf(`${folder}/${descriptor}`) === path)
  } catch {
    return false
  }
}

/** Returns the target of a link, or null when the file has been closed meanwhile. */
function linkOf(link: string): string | null {
  try {
    return readlinkSync(link)
  } catch {
    return null
  }
}

/** Returns the name of the program, for a script of Node with the name of the script. */
function programOf(pid: string): string {
  const [program = '', ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  const script = words.find((word) => /\.[cm]?[jt]s$/.test(word) && !word.includes('node_modules'))
  const name = basename(program) || 'a program'
  const shown = name === 'node' && script !== undefined ? `${name} ${basename(script)}` : name
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal would interpret them.
  return shown.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '')
}
