// Runs the shell commands of the guide to imports as they stand there, and checks what they leave.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { useFolder } from '../support/folders.ts'
import { listeningServer } from '../support/listening.ts'
import { needing } from '../support/programs.ts'
import { useOne } from '../support/using.ts'

const commands = codeBlocks('src/http/docs/guides/imports.md', 'sh').join('')

const folder = useFolder('guide')
const server = useOne(() => listeningServer({ worker: true }))

needing('curl', 'jq').describe('the guide to imports', () => {
  it('imports the person of its file', async () => {
    const token = { userId: 1, name: 'guide', kind: 'personal', abilities: ['*'], expiresAt: null } as const
    const { text } = await issueToken(server.store.db, { ...token, allowedIps: [] }, start)
    const env = { PATH: process.env.PATH, ACCORD_TOKEN: text }
    const script = commands.replaceAll('http://localhost:8000', server.url)
    const { stdout } = await promisify(execFile)('sh', ['-ec', script], { env, cwd: folder })
    // jq prints the last reply with spaces.
    expect(stdout).toContain('"state": "completed"')
    expect(stdout).toContain('"processed_rows_count": 1,')
    // The settings of the second import, as they were confirmed.
    expect(stdout).toContain('"date_format":"dmy","decimal_separator":","')
    expect(stdout).toMatch(/"line":1,"status":201.*\n.*"line":2,"status":201/)
    // The attribute has a code, and no problem has one.
    expect(stdout).toContain('"mapping":{"name":"name","emails":"emails","Shoe size":"shoe_size"}')
    expect(stdout.replace('"code":"shoe_size"', '')).not.toContain('"code":')
  })
})
