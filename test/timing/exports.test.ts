// An export of many megabytes needs no more memory than a few rows.
// test/kernel/resource/exports.test.ts tests its content.
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { openAt } from '../support/engine.ts'
import { useFolder } from '../support/folders.ts'
import { addProducts } from '../support/products.ts'
import { useSharedServer } from '../support/using.ts'

const folder = useFolder('export')
const server = useSharedServer({ open: openAt(join(folder, 'accord.db')) })
let url: string
beforeAll(async () => {
  await addProducts(server.store.db, 100_000, 'long '.repeat(60))
  url = await server.app.http.listen({ host: '127.0.0.1', port: 0 })
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
