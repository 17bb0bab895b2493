// `npm run dev` starts a server with a scratch data folder. The server writes e-mails into a
// folder. Each save of openapi.yaml regenerates the generated files and restarts the server. The
// script watches the folder of openapi.yaml, because editors replace the file when they save.
import { type ChildProcess, spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contractFile, findRoot } from './read.ts'
import { regenerate } from './regenerate.ts'

const settleMs = 150
const graceMs = 5000

const root = findRoot()
const dataFolder = process.env.ACCORD_DATA_DIR ?? join(tmpdir(), 'accord-dev')
let server: ChildProcess | undefined
let timer: NodeJS.Timeout | undefined
let work = Promise.resolve()

/**
 * Lints the contract and writes the generated files. Returns false if the contract has findings.
 * The running server then stays up.
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
  if (!(await refresh())) return
  await stop()
  server = spawn(process.execPath, ['--import', 'tsx', 'src/cli.ts', 'start'], {
    cwd: root,
    stdio: 'inherit',
    env: { ACCORD_SMTP_URL: `file:${join(dataFolder, 'mailbox')}`, ...process.env, ACCORD_DATA_DIR: dataFolder },
  })
}

console.log(`data in ${dataFolder}; waiting for changes of ${contractFile}`)
const watcher = watch(root, (_event, name) => {
  if (name !== contractFile) return
  clearTimeout(timer)
  timer = setTimeout(() => {
    work = work.then(restart)
  }, settleMs)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    watcher.close()
    clearTimeout(timer)
    work = work.then(stop)
  })
}
process.on('exit', () => server?.kill('SIGKILL'))
work = work.then(restart)
