// `accord open`: opens the documentation of the running server in the browser of this machine. The
// address is printed, too, because a server often has no browser.
import { spawn } from 'node:child_process'
import type { Config } from '../config/config.ts'
import { links } from '../http/home/links.ts'
import { CommandError } from './command-error.ts'

const waitMs = 3_000

export async function openCommand(config: Config): Promise<void> {
  const base = config.appUrl ?? `http://${hostOf(config.host)}:${config.port}`
  const answer = await fetch(`${base}${links.health}`, { signal: AbortSignal.timeout(waitMs) }).catch(() => null)
  if (!answer?.ok) throw new CommandError(`No server of Accord CRM answers at ${base}. To start one, run: accord start`)
  const url = `${base}${links.documentation}`
  console.log(url)
  await openInBrowser(url)
}

/**
 * Returns a host that a browser can open. For a server that listens on all addresses, the host is
 * localhost.
 */
function hostOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

/** Starts the browser. Does nothing if there is no browser. */
function openInBrowser(url: string): Promise<void> {
  const [program, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url]
        : ['xdg-open', url]
  return new Promise((resolve) => {
    const child = spawn(program ?? '', args, { detached: true, stdio: 'ignore' })
    child.once('error', () => resolve())
    child.once('spawn', () => {
      child.unref()
      resolve()
    })
  })
}
