// Follows the README in its order: starts the server from nothing, and runs every command that a
// reader would paste, in one shell.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { accordServing, type Serving } from '../support/accord.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { useFolder } from '../support/folders.ts'
import { needing } from '../support/programs.ts'

const blocks = codeBlocks('README.md', 'sh')
/** The commands of the checkout; other tests run them. */
const checkout = ['npm ci && npm start\n', 'npm ci && npm test\n']

const folder = useFolder('readme')
let serving: Serving
beforeAll(async () => {
  serving = await accordServing(folder, 'start')
})
afterAll(async () => {
  await serving.stop()
})

needing('curl', 'jq').describe('the README', () => {
  it('begins with the command that works in a checkout, and its other commands work as pasted', async () => {
    expect(blocks[0]).toBe(checkout[0])
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
    expect([scripts.prestart, scripts.start]).toEqual([
      'node codegen/build.mjs --if-changed',
      'node dist/src/cli.js start',
    ])
    const password = /Password +(\S+)/.exec(serving.said.stdout)?.[1] ?? ''
    const script = blocks
      .filter((block) => !checkout.includes(block))
      .join('\n')
      .replace('http://127.0.0.1:8000', serving.url)
      .replace('the password that the start has printed', password)
      // The feed does not end.
      .replace(/curl -sN [^\n]*(?:\\\n[^\n]*)*/, (command) => `${command} --max-time 3 || [ $? = 28 ]`)
    const { stdout } = await promisify(execFile)('sh', ['-ec', script], {
      cwd: folder,
      env: { PATH: process.env.PATH },
    })
    expect(stdout).toContain('"errors":{"lead_valu":["Unknown field. Did you mean `lead_value`?"]}')
    expect(stdout).toContain('"code":"industry"')
    expect(stdout).toMatch(/retry: \d+\nid: \d+/)
  })
})
