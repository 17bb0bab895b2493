// An export of many megabytes needs no more memory than a few rows.
// test/kernel/resource/exports.test.ts tests its content.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { addProducts } from '../support/products.ts'

let folder: string
let server: TestServer
let url: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'accord-export-'))
  const file = join(folder, 'accord.db')
  server = await startServer({
    open: (image) => {
      writeFileSync(file, image)
      return openStore(`sqlite:${file}`)
    },
  })
  await addProducts(server.store.db, 100_000, 'long '.repeat(60))
  url = await server.app.http.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

it('takes no more memory than a few rows', async () => {
  const headers = { authorization: `Bearer ${server.admin.token}`, accept: 'application/json' }
  const call = request(`${url}/api/admin/products/export?sort=id`, { headers }).end()
  const [reply] = (await once(call, 'response')) as [IncomingMessage]
  const heap = (): number => process.memoryUsage().heapUsed
  const before = heap()
  let [most, bytes] = [0, 0]
  for await (const chunk of reply) {
    bytes += chunk.length
    most = Math.max(most, heap() - before)
  }
  expect(bytes).toBeGreaterThan(50e6)
  expect(most).toBeLessThan(64e6)
})
