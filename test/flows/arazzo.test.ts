// Runs the workflows of the served Arazzo document with `redocly respect` against a server, a
// webhook receiver and a mail server.
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { adminPassword } from '../support/app.ts'
import { useFolder } from '../support/folders.ts'
import { listeningServer } from '../support/listening.ts'
import { startReceiver } from '../support/receiver.ts'
import { facts } from '../support/schema.ts'
import { startSmtp } from '../support/smtp.ts'
import { useOne } from '../support/using.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const written = 'src/http/docs/arazzo.yaml'
const redocly = 'node_modules/@redocly/cli/bin/cli.js'

interface Workflow {
  workflowId: string
  steps: { stepId: string; operationId?: string; workflowId?: string }[]
}
const { workflows } = parse(readFileSync(join(root, written), 'utf8')) as { workflows: Workflow[] }

interface Finished {
  code: number
  output: string
}

const folder = useFolder('arazzo')
/** The document as the server sends it. */
let source: string
const receiver = useOne(startReceiver)
const smtp = useOne(startSmtp)
const server = useOne(() =>
  listeningServer({
    webhookAllowHttp: true,
    webhookAllowCidrs: ['127.0.0.1/32'],
    smtpUrl: smtp.url,
    worker: true,
  }),
)
beforeAll(async () => {
  source = join(folder, 'arazzo.yaml')
  const reply = await fetch(`${server.url}/api/admin/arazzo.yaml`)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/yaml; charset=utf-8'])
  writeFileSync(source, await reply.text())
  cpSync(join(root, 'test/flows/arazzo/persons.csv'), join(folder, 'persons.csv'))
})

function run(args: readonly string[]): Promise<Finished> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' }
  return new Promise((resolve) =>
    execFile(process.execPath, [redocly, ...args], { cwd: root, env, timeout: 240_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    ),
  )
}

/** Runs all workflows in one process, because Redocly needs long to read the contract. */
const respect = (password: string, workflow: readonly string[] = []): Promise<Finished> => {
  const inputs = { email: 'admin@example.com', password, url: `${receiver.url}/hooks` }
  const args = ['respect', source, '-S', `accord=${server.url}`, '-i', JSON.stringify(inputs)]
  return run([...args, ...workflow.flatMap((each) => ['-w', each])])
}

describe('arazzo.yaml', { timeout: 300_000 }, () => {
  it('is valid, and each step names an operation of the contract or a workflow', async () => {
    for (const document of [written, source]) {
      const { code, output } = await run(['lint', document])
      expect(code, output).toBe(0)
    }
    expect(parse(readFileSync(source, 'utf8')).sourceDescriptions[0].url).toBe(`${server.url}/api/admin/openapi.json`)
    const names = [...facts.map(([id]) => id), ...workflows.map(({ workflowId }) => workflowId)]
    const steps = workflows.flatMap(({ steps }) => steps.map((step) => step.operationId ?? step.workflowId ?? ''))
    expect(steps.filter((name) => !names.includes(name))).toEqual([])
  })

  it('fails when a step fails', async () => {
    const { code, output } = await respect('not the password', ['exportLeads'])
    expect(code).not.toBe(0)
    expect(output).toMatch(/stepId - login\s+✗ success criteria check/)
  })

  it('runs seven workflows, which send messages and an e-mail', async () => {
    const { code, output } = await respect(adminPassword)
    expect(code, output).toBe(0)
    expect(output).toMatch(/Workflows: 7 passed, 7 total/)
    const messages = receiver.received.map(({ body }) => JSON.parse(body) as { type: string; data: { name: string } })
    expect(messages.map(({ type }) => type)).toEqual(['webhook.test', 'settings.tag.create.after'])
    expect(messages.map(({ data }) => data.name)).toEqual(messages.map(({ type }) => type))
    expect(smtp.received.some(({ to }) => to.includes('dorothy.workflow@example.com'))).toBe(true)
  })
})
