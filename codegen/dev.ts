// `npm run dev` starts a server with the data folder `.dev` in the checkout. The server writes
// e-mails into `.dev/mailbox`. A saved code file restarts the server. A saved openapi.yaml first
// regenerates the generated files. The script watches folders, because editors replace a file when
// they save it.
import { type ChildProcess, spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { join } from 'node:path'
import { contractFile, findRoot } from './read.ts'
import { regenerate } from './regenerate.ts'

const settleMs = 150
const graceMs = 5000

const root = findRoot()
const dataFolder = process.env.ACCORD_DATA_DIR ?? join(root, '.dev')
const codeFolders = ['src', 'db']
/** Whether the contract has changed since the generated files were written. */
let isContractNew = true
let server: ChildProcess | undefined
let timer: NodeJS.Timeout | undefined
let work = Promise.resolve()

/**
 * Lints the contract and writes the generated files. Returns false if the contract has findings.
 * The running server then keeps running.
 */
async function refresh(): Promise<boolean> {
  try {
    const { written, findings } = await regenerate({ root, check: false })
    for (const path of written) console.log(`wrote ${path}`)
    for (const finding of findings) console.error(finding)
    return findings.length === 0
  } catch (error) {
    console.error(error)
    return false
  }
}

async function stop(): Promise<void> {
  const running = server
  server = undefined
  if (!running || running.exitCode !== null || running.signalCode !== null) return
  await new Promise<void>((resolve) => {
    const kill = setTimeout(() => running.kill('SIGKILL'), graceMs)
    running.once('exit', () => {
      clearTimeout(kill)
      resolve()
    })
    running.kill('SIGTERM')
  })
}

async function restart(): Promise<void> {
  if (isContractNew) {
    isContractNew = false
    if (!(await refresh())) return
  }
  await stop()
  server = spawn(process.execPath, ['--import', 'tsx', 'src/cli.ts', 'start'], {
    cwd: root,
    stdio: 'inherit',
    env: { ACCORD_SMTP_URL: `file:${join(dataFolder, 'mailbox')}`, ...process.env, ACCORD_DATA_DIR: dataFolder },
  })
}

function restartSoon(): void {
  clearTimeout(timer)
  timer = setTimeout(() => {
    work = work.then(restart)
  }, settleMs)
}

console.log(`data in ${dataFolder}; waiting for changes of ${contractFile}, ${codeFolders.join(' and ')}`)
const watchers = [
  watch(root, (_event, name) => {
    if (name !== contractFile) return
    isContractNew = true
    restartSoon()
  }),
  ...codeFolders.map((folder) =>
    watch(join(root, folder), { recursive: true }, (_event, name) => {
      // Generated files are ignored, because the change of the contract already restarts the
      // server.
      if (name !== null && /\.(?:ts|js|css)$/.test(name) && !name.includes('.gen.')) restartSoon()
    }),
  ),
]

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const watcher of watchers) watcher.close()
    clearTimeout(timer)
    work = work.then(stop)
  })
}
process.on('exit', () => server?.kill('SIGKILL'))
work = work.then(restart)
