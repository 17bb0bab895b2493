// Runs the Python module from the guide for clients: it signs in, reads a list by cursor, creates a
// record with an Idempotency-Key, and verifies webhook signatures.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { listeningServer } from '../support/listening.ts'
import { needing } from '../support/programs.ts'
import { useOne } from '../support/using.ts'
import { webhookMessages, webhookSecret } from '../support/webhook-messages.ts'

const program = codeBlocks('src/http/docs/guides/clients.md', 'python').join('\n')
const server = useOne(listeningServer)

/** Runs the module and the statements after it, and returns the lines that they print. */
async function run(after: string, input: object = {}): Promise<string[]> {
  const env = {
    ...{ PATH: process.env.PATH, ACCORD_URL: server.url, ACCORD_EMAIL: 'admin@example.com' },
    ...{ ACCORD_PASSWORD: adminPassword, INPUT: JSON.stringify(input), PYTHONUTF8: '1' },
  }
  const { stdout } = await promisify(execFile)('python3', ['-W', 'error', '-c', `${program}\n${after}`], { env })
  return stdout.trim().split('\n')
}

needing('python3').describe('the Python module of the guide to clients', () => {
  it('signs in, creates a lead, and lists it', async () => {
    expect(await run('')).toEqual([expect.stringMatching(/^\d+ 40 seats for Analytical Ltd$/)])
    const again = await run('')
    expect(again).toHaveLength(2)
    expect(again[0]).toMatch(/40 seats for Analytical Ltd$/)
  })

  it('reads a list of several pages, without a record twice', async () => {
    const made = "for n in range(7): create('/tags', {'name': f'Tag {n}', 'color': '#112233'})"
    const read = "print(len({each['id'] for each in list_all('/tags', per_page=2)}))"
    const counted = "print(call('GET', '/tags')['meta']['total'])"
    const [count, total] = (await run([made, read, counted].join('\n'))).slice(-2)
    expect([Number(count) >= 7, count]).toEqual([true, total])
  })

  it('repeats a create after a broken connection, and gets the first record', async () => {
    const lines = [
      'sleep, answer, keys = time.sleep, call, []',
      'time.sleep = lambda _seconds: None',
      'def call(method, path, body=None, headers=None):',
      '    reply = answer(method, path, body, headers)',
      "    keys.append(headers['Idempotency-Key'])",
      "    if len(keys) == 1: raise ConnectionResetError('The reply is lost.')",
      '    return reply',
      "tag = create('/tags', {'name': 'Once', 'color': '#112233'})",
      "print(len(keys), len(set(keys)), tag['name'])",
    ]
    expect((await run(lines.join('\n'))).at(-1)).toBe('2 1 Once')
  })

  it('says why a call was refused', async () => {
    const lines = ['try:', "    call('POST', '/leads', {'titel': 'x'})", 'except Problem as problem:']
    lines.push("    print(problem, sorted(problem.details['errors']))")
    expect((await run(lines.join('\n'))).at(-1)).toMatch(/^validation_failed: .+ \['titel', 'title'\]$/)
  })

  it('accepts genuine messages of webhooks, and no others', async () => {
    const { good, bad, body } = webhookMessages()
    const cases = [...good, ...bad]
    const lines = [
      "given = json.loads(os.environ['INPUT'])",
      "body = given['body'].encode()",
      "print(json.dumps([is_genuine(headers, body, given['secret']) for headers in given['cases']]))",
      "print(is_genuine(given['cases'][0], body + b' ', given['secret']))",
      "print(is_genuine(given['cases'][0], body, 'whsec_'))",
    ]
    const [list, changed, unsigned] = (await run(lines.join('\n'), { cases, body, secret: webhookSecret })).slice(-3)
    expect(JSON.parse(list ?? '')).toEqual([...good.map(() => true), ...bad.map(() => false)])
    expect([changed, unsigned]).toEqual(['False', 'False'])
  })
})
