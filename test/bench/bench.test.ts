// A small run of the benchmark: both servers must reply to each request with the same bytes. The
// measured times are not checked.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { measureBoth } from './both.ts'
import { type Filled, fill } from './fill.ts'
import { table } from './report.ts'
import { kinds } from './requests.ts'
import { mustAnswerTheSame } from './same.ts'
import { copyOf, remove, type Server, start } from './servers.ts'

const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'accord-bench-test-'))
let filled: Filled

beforeAll(async () => {
  filled = await fill(folder, 200)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('npm run bench', { timeout: 300_000 }, () => {
  it('has a row for every kind of request, once both servers have answered and written the same', async () => {
    const said: string[] = []
    const options = { kinds, rounds: 1, seconds: 0.05, requests: 8, program }
    const rows = await measureBoth(filled, options, (text) => said.push(text))
    expect(said[0]).toBe(`Both servers answer the same bytes and leave the same rows: ${kinds.join(', ')}.`)
    expect(rows.map(({ kind }) => kind)).toEqual(kinds)
    expect(table(rows).split('\n')).toHaveLength(1 + kinds.length)
  })

  it('stops where they do not answer the same, and says what differs', async () => {
    const world = { leads: filled.leads, email: filled.email, password: filled.password }
    const servers: Server[] = []
    const folders = [copyOf(folder), copyOf(folder)]
    try {
      servers.push(
        await start('limit', folders[0] ?? ''),
        await start('limit', folders[1] ?? '', { base: 'http://other' }),
      )
      const compared = mustAnswerTheSame(servers as [Server, Server], ['show', 'list'], {
        world,
        token: filled.token,
        times: 2,
      })
      await expect(compared).rejects.toThrow(/^list: GET .* differs\.[\s\S]*http:\/\/other/)
    } finally {
      for (const server of servers) await server.stop()
      folders.forEach(remove)
    }
  })

  it('keeps a filled folder, and fills it again only for another number of leads', async () => {
    const again = await fill(folder, 200)
    expect(again.token).toBe(filled.token)
    const other = await fill(folder, 100)
    expect(other.token).not.toBe(filled.token)
  })
})
