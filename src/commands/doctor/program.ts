// The checks of `accord doctor` that concern the program: Node, the contract, listener modules and
// the port.
import { createServer } from 'node:net'
import type { Config } from '../../config/config.ts'
import { loadExtensions } from '../../extensions.ts'
import { openPublished } from '../../installation/data-folder.ts'
import { generatedContract, isGeneratedCurrent } from '../../installation/package-info.ts'
import type { CheckResult } from './check-result.ts'

export function checkNodeVersion(version = process.versions.node): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isSupported = (major === 20 && minor >= 19) || major > 20
  return isSupported ? null : 'Accord CRM needs Node 20.19 or newer. Install Node 24, then run npm ci again.'
}

export function checkContract(): CheckResult {
  return isGeneratedCurrent(generatedContract())
    ? null
    : 'openapi.yaml has changed since the last generation. Run: accord regenerate'
}

export function checkDocumentation(config: Config): CheckResult {
  const published = openPublished(config)()
  if (published === null) return 'the contract is not published in the data folder. Run: accord install'
  const isSame = published.hash === generatedContract()['x-contract-hash']
  return isSame ? null : 'it shows a different version of the contract than this program uses. Run: accord regenerate'
}

export async function checkListeners(config: Config): Promise<CheckResult> {
  await loadExtensions(config.listeners)
  return null
}

/** Checks that the port is free or that an Accord server already uses it. */
export async function checkPort({ host, port }: Config): Promise<CheckResult> {
  const problem = await new Promise<string | null>((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    probe.listen({ host, port }, () => probe.close(() => resolve(null)))
  })
  if (problem === null) return null
  if (problem !== 'EADDRINUSE') return `it cannot be opened (${problem}). Change ACCORD_HOST or ACCORD_PORT.`
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  const answer = await fetch(`http://${address}:${port}/healthz`, { signal: AbortSignal.timeout(2000) })
    .then((reply) => reply.json() as Promise<{ status?: string; version?: string }>)
    .catch(() => null)
  return answer?.status === 'ok' && typeof answer.version === 'string'
    ? null
    : 'another program listens there. Stop it, or set ACCORD_PORT.'
}
