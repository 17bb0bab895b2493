// `accord bulk` and `bulk()` of the client send lines to a server, and continue after a cut.
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket, connect as socketTo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type BulkAnswer, type BulkLine, bulk } from '../../codegen/client/bulk.ts'
import { createAccordClient } from '../../codegen/client/client.ts'
import { AccordProblem } from '../../codegen/client/problem.ts'
import { bulkCommand } from '../../src/commands/bulk.ts'
import { adminPassword, testConfig } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { newName } from '../support/names.ts'
import { useOne } from '../support/using.ts'

const server = useOne(() => listeningServer())

let proxy: Server | undefined
afterEach(() => {
  proxy?.close()
  proxy = undefined
  process.exitCode = 0
})

const lines = (name: string, count: number): BulkLine[] =>
  Array.from({ length: count }, (_, index) => ({
    op: 'create',
    type: 'leads',
    fields: { title: `${name} ${index}`, lead_value: index },
  }))

const titles = async (name: string): Promise<string[]> =>
  (
    await server.app.services.store.db
      .selectFrom('leads')
      .select('title')
      .where('title', 'like', `${name} %`)
      .orderBy('id')
      .execute()
  ).map(({ title }) => title)

async function token(): Promise<string> {
  const body = { email: 'admin@example.com', password: adminPassword, device_name: newName('bulk') }
  const { data } = await createAccordClient({ url: server.url }).POST('/api/admin/login', { body })
  if (!data) throw new Error('The sign-in failed.')
  return data.data.token
}

/** Returns the origin of a proxy that cuts its first connections after some bytes of the answer. */
async function cutting(cuts: number, afterBytes: number): Promise<string> {
  let left = cuts
  const { port } = new URL(server.url)
  proxy = createServer((client: Socket) => {
    const target = socketTo(Number(port), '127.0.0.1')
    let bytes = 0
    const isCut = left-- > 0
    target.on('data', (chunk) => {
      bytes += chunk.length
      if (isCut && bytes > afterBytes) client.destroy()
      else client.write(chunk)
    })
    client.on('data', (chunk) => target.write(chunk))
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const)
      one.on('close', () => other.destroy()).on('error', () => other.destroy())
  })
  await new Promise<void>((resolve) => proxy?.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

describe('bulk() of the client', () => {
  const client = async (url = server.url) => createAccordClient({ url, token: await token() })
  const allOf = async (answers: AsyncIterable<BulkAnswer>): Promise<BulkAnswer[]> => {
    const all: BulkAnswer[] = []
    for await (const answer of answers) all.push(answer)
    return all
  }

  it('yields the answer to a line before the next line is there', async () => {
    const name = newName('Early')
    let answered = 0
    async function* slowly(): AsyncGenerator<BulkLine> {
      for (const line of lines(name, 3)) {
        const before = answered
        yield line
        // The client sends a line before it takes the next one.
        while (answered === before && answered < 2) await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    for await (const answer of bulk(await client(), slowly)) answered = answer.line
    expect(await titles(name)).toHaveLength(3)
  })

  it('continues after cuts, yields each answer once and writes each line once', async () => {
    const name = newName('Cut')
    const answers = await allOf(bulk(await client(await cutting(3, 20_000)), lines(name, 1500)))
    expect(answers.map(({ line }) => line)).toEqual(Array.from({ length: 1500 }, (_, index) => index + 1))
    expect(await titles(name)).toEqual(Array.from({ length: 1500 }, (_, index) => `${name} ${index}`))
  }, 60_000)

  it('throws what refuses the request, and yields what refuses a line', async () => {
    const wrong = createAccordClient({ url: server.url, token: '1|none' })
    await expect(allOf(bulk(wrong, []))).rejects.toThrow(AccordProblem)
    const answers = await allOf(bulk(await client(), [{ op: 'delete', type: 'leads', id: 999_999 }], { dryRun: true }))
    expect(answers).toMatchObject([{ line: 1, status: 404, problem: { code: 'not_found' } }])
    const stopped = bulk(await client(), [{ op: 'delete', type: 'leads', id: 9_999 }, ...lines('No', 1)], {
      onError: 'stop',
    })
    expect(await allOf(stopped)).toHaveLength(1)
  })
})

describe('accord bulk', () => {
  const run = async (file: string, options: object = {}): Promise<BulkAnswer[]> => {
    const output = join(server.dataDir, `${newName('out')}.ndjson`)
    const given = { token: await token(), url: server.url, onError: 'continue', output, ...options } as const
    await bulkCommand(testConfig(), file, given as never)
    return readFileSync(output, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as BulkAnswer)
  }
  const write = (all: readonly unknown[]): string => {
    const path = join(server.dataDir, `${newName('file')}.ndjson`)
    writeFileSync(path, `\ufeff${all.map((line) => JSON.stringify(line)).join('\r\n\r\n')}\n`)
    return path
  }

  it('continues after cuts, and prints each answer once', async () => {
    const name = newName('File')
    const file = write([...lines(name, 800), { op: 'create', type: 'leads', fields: {} }])
    const answers = await run(file, { url: await cutting(2, 20_000) })
    expect(answers.map(({ line }) => line)).toEqual(Array.from({ length: 801 }, (_, index) => 2 * index + 1))
    expect(await titles(name)).toHaveLength(800)
    expect(process.exitCode).toBe(1)
  }, 60_000)

  it('prints the same answers again when the same command runs again, and writes nothing', async () => {
    const name = newName('Again')
    const file = write(lines(name, 120))
    const given = { token: await token() }
    const first = await run(file, given)
    expect(await run(file, given)).toEqual(first)
    expect(await titles(name)).toHaveLength(120)
  })

  it('says why it cannot send', async () => {
    const file = write([])
    await expect(run(`${file}.none`)).rejects.toThrow('does not exist')
    await expect(run(file, { token: undefined })).rejects.toThrow('A token is missing')
    await expect(run(file, { token: '1|none' })).rejects.toThrow('No valid bearer token')
    expect(await run(file)).toEqual([])
    expect(await run(write(lines(newName('Dry'), 2)), { dryRun: true })).toMatchObject([{ did: 'created' }, {}])
  })
})
