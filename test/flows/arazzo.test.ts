// The workflows of arazzo.yaml run against a real server with a receiver of webhooks and a mail
// server. `redocly respect` runs them, as an integrator would.
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { adminPassword } from '../support/app.ts'
import { contract } from '../support/contract.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type SmtpServer, startSmtp } from '../support/smtp.ts'

const source = fileURLToPath(new URL('../../src/http/docs/arazzo.yaml', import.meta.url))
const redocly = fileURLToPath(new URL('../../node_modules/@redocly/cli/bin/cli.js', import.meta.url))

interface Workflow {
  workflowId: string
  steps: { stepId: string; operationId?: string; workflowId?: string }[]
}
const { workflows } = parse(readFileSync(source, 'utf8'), { merge: true }) as { workflows: Workflow[] }

interface Finished {
  code: number
  output: string
}

let folder: string
let server: Listening
let receiver: Receiver
let smtp: SmtpServer
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'accord-arazzo-'))
  copyFileSync(source, join(folder, 'arazzo.yaml'))
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(contract))
  receiver = await startReceiver()
  smtp = await startSmtp()
  server = await listeningServer({
    webhookAllowHttp: true,
    webhookAllowCidrs: ['127.0.0.1/32'],
    smtpUrl: smtp.url,
    worker: true,
  })
})
afterAll(async () => {
  await server?.close()
  await receiver?.close()
  await smtp?.close()
  rmSync(folder, { recursive: true, force: true })
})

function run(args: readonly string[]): Promise<Finished> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' }
  return new Promise((resolve) =>
    execFile(process.execPath, [redocly, ...args], { cwd: folder, env, timeout: 240_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    ),
  )
}

const respect = (workflow: string, password: string): Promise<Finished> => {
  const inputs = { email: 'admin@example.com', password, endPoint: `${receiver.url}/hooks` }
  const target = `accord=${server.url}`
  return run(['respect', 'arazzo.yaml', '-w', workflow, '-S', target, '-i', JSON.stringify(inputs)])
}

describe('arazzo.yaml', { timeout: 300_000 }, () => {
  it('is valid, and each step names an operation of the contract or a workflow', async () => {
    const { code, output } = await run(['lint', 'arazzo.yaml'])
    expect(code, output).toBe(0)
    const operationIds = Object.values(contract.paths as Record<string, Record<string, { operationId: string }>>)
      .flatMap((item) => Object.values(item))
      .map(({ operationId }) => operationId)
    const names = [...operationIds, ...workflows.map(({ workflowId }) => workflowId)]
    const steps = workflows.flatMap(({ steps }) => steps.map((step) => step.operationId ?? step.workflowId ?? ''))
    expect(steps.filter((name) => !names.includes(name))).toEqual([])
    expect(workflows).toHaveLength(7)
  })

  it('fails when a step fails', async () => {
    const { code, output } = await respect('exportLeads', 'not the password')
    expect(code, output).not.toBe(0)
  })

  it.each(workflows.map(({ workflowId }) => workflowId))('%s runs', async (workflow) => {
    const { code, output } = await respect(workflow, adminPassword)
    expect(code, output).toBe(0)
  })

  it('leaves what the workflows have made', () => {
    const messages = receiver.received.map(({ body }) => JSON.parse(body) as { type: string; data: { name: string } })
    expect(messages.map(({ type }) => type)).toEqual(['webhook.test', 'settings.tag.create.after'])
    expect(messages.map(({ data }) => data.name)).toEqual(messages.map(({ type }) => type))
    expect(smtp.received.some(({ to }) => to.includes('dorothy.workflow@example.com'))).toBe(true)
  })
})
