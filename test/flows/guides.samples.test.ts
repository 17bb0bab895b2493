// Runs the shell samples of the guides as they stand there: a refused call fails the test. The JSON
// samples are checked against the contract, and the operations and links that a guide names exist.
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { guides } from '../../src/http/docs/guides.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { adminPassword, contract, start } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { useFolder } from '../support/folders.ts'
import { listeningServer } from '../support/listening.ts'
import { needing } from '../support/programs.ts'
import { useOne } from '../support/using.ts'

const pathOf = (name: string): string => `src/http/docs/guides/${name}.md`
const textOf = (name: string): string => readFileSync(pathOf(name), 'utf8')
const written = guides.filter(({ name }) => name !== 'changes').map(({ name }) => name)

/** The guides whose commands another test runs, or that install packages. */
const elsewhere = ['imports', 'clients']

const folder = useFolder('samples')
const server = useOne(() => listeningServer({ worker: true, webhookAllowHttp: true }))

needing('curl', 'jq').describe('the shell samples', () => {
  const withCommands = written.filter((name) => !elsewhere.includes(name) && codeBlocks(pathOf(name), 'sh').length > 0)

  /** Runs the commands with a curl that fails if the server refuses the call, and waits at 503. */
  async function run(name: string, commands: string): Promise<string> {
    const token = { userId: 1, name: 'guide', kind: 'personal', abilities: ['*'], expiresAt: null } as const
    const { text } = await issueToken(server.store.db, { ...token, allowedIps: [] }, start)
    const [bin, cwd] = [join(folder, 'bin'), join(folder, name)]
    for (const each of [bin, cwd]) mkdirSync(each, { recursive: true })
    const curl = (await promisify(execFile)('sh', ['-c', 'command -v curl'])).stdout.trim()
    writeFileSync(join(bin, 'curl'), `#!/bin/sh\nexec ${curl} --fail-with-body --show-error --retry 8 "$@"\n`)
    chmodSync(join(bin, 'curl'), 0o755)
    const script = commands
      .replaceAll('http://localhost:8000', server.url)
      .replace('"password": "…"', `"password": "${adminPassword}"`)
    const env = { PATH: `${bin}:${process.env.PATH}`, ACCORD_TOKEN: text }
    return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env, cwd })).stdout
  }

  it.each(withCommands)('of the guide %s run as they stand', async (name) => {
    const blocks = codeBlocks(pathOf(name), 'sh')
    // A template that the guide to campaigns expects.
    if (name === 'campaigns')
      await run(
        name,
        `curl -s http://localhost:8000/api/admin/settings/email-templates -H "Authorization: Bearer $ACCORD_TOKEN" -H 'Accept: application/json' -H 'Content-Type: application/json' -d '{"name": "Fair", "subject": "Fair", "content": "<p>Come.</p>"}'`,
      )
    const said = await run(name, blocks.join('\n'))
    expect(said).not.toMatch(/^null$/m)
    expect(said).not.toContain('"status":4')
  })

  it('fail the test when the server refuses a call', async () => {
    const refused = `curl -s http://localhost:8000/api/admin/leads -H 'Accept: application/json' -d '{}' | jq .`
    await expect(run('refused', refused)).rejects.toThrow()
  })
})

type Schema = { $ref?: string; properties?: Record<string, unknown>; allOf?: Schema[] }
const schemas = (contract.components as { schemas: Record<string, Schema> }).schemas

/** The schema of each JSON sample, in the order of the guides. */
const jsonSamples: Readonly<Record<string, readonly string[]>> = {
  errors: ['Problem'],
  filtering: ['LeadQuery', 'ViewCreate'],
  'custom-attributes': ['OrganizationUpdate'],
  campaigns: ['CampaignAudienceSizeResult'],
  sync: ['LeadUpdate'],
}

describe('the JSON samples', () => {
  it.each(written)('of the guide %s are JSON with keys of their schemas', (name) => {
    const samples = codeBlocks(pathOf(name), 'json')
    const names = jsonSamples[name] ?? []
    expect(samples).toHaveLength(names.length)
    for (const [at, sample] of samples.entries()) {
      const known = schemas[names[at] ?? '']?.properties
      const unknown = Object.keys(JSON.parse(sample)).filter((key) => known?.[key] === undefined)
      expect(unknown, sample).toEqual([])
    }
  })
})

const operations = Object.entries(
  contract.paths as Record<string, Record<string, { operationId: string; tags: string[] }>>,
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId, tags }]) => ({ path, method, operationId, tag: tags[0] })),
)

const anchorsOf = (name: string): string[] =>
  [...textOf(name).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w]+/g, '-')
      .replace(/^-|-$/g, ''),
  )

describe('what a guide names', () => {
  it.each(written)('exists: %s', (name) => {
    const text = textOf(name)
    for (const [, tag = '', id] of text.matchAll(/\/documentation#\/([^/)]+)\/(\w+)/g))
      expect(operations, id).toContainEqual(expect.objectContaining({ tag: decodeURIComponent(tag), operationId: id }))
    for (const [, verb = '', path = ''] of text.matchAll(/\b(GET|POST|PUT|DELETE) (?:\/api\/admin)?(\/[\w{}/-]+)/g)) {
      if (path.startsWith('/hooks')) continue
      const form = new RegExp(`^/api/admin${path.replaceAll(/\{\w+\}|\b\d+\b/g, '[^/]+')}$`)
      const found = operations.some(({ path, method }) => form.test(path) && method === verb.toLowerCase())
      expect(found, `${verb} ${path}`).toBe(true)
    }
    for (const [, guide = '', anchor] of text.matchAll(/\]\(([a-z-]+)(?:#([\w-]+))?\)/g)) {
      expect(guides.map(({ name }) => name)).toContain(guide)
      if (anchor !== undefined) expect(anchorsOf(guide), `${guide}#${anchor}`).toContain(anchor)
    }
  })
})
