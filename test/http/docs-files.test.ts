// The files of the documentation page: compressed from memory, cached by version, and sent also
// while load shedding refuses other requests.
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { registerPages } from '../../src/http/docs/page-routes.ts'
import { defaultLimits } from '../../src/http/load-shedding/admission-queue.ts'
import { registerLoadShedding } from '../../src/http/load-shedding/load-shedding.ts'
import type { Services } from '../../src/kernel/context.ts'
import { testConfig } from '../support/app.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

const base = '/api/admin/documentation'
const get = (url: string, headers: Record<string, string> = {}) =>
  server.inject({ method: 'GET', url, headers: { accept: '*/*', ...headers } })

/** Returns the URLs of the files that the reference page names. */
async function filesOfPage(): Promise<string[]> {
  const { body } = await get(base)
  return [
    ...new Set(
      [...body.matchAll(/(?:href|src)="(\/api\/admin\/documentation\/files\/[^"]+)"/g)].map(([, url]) => String(url)),
    ),
  ]
}

it('are all that the page names, and are found', async () => {
  const urls = await filesOfPage()
  expect(urls.filter((url) => url.endsWith('.css')).length).toBe(2)
  const replies = await Promise.all([...urls, `${base}/static/swagger-ui.css`].map((url) => get(url)))
  expect(replies.map(({ statusCode }) => statusCode)).toEqual(replies.map(() => 200))
})

it('are sent while load shedding refuses everything else', async () => {
  const config = testConfig()
  const http = Fastify()
  http.decorateRequest('address', '127.0.0.1')
  for (const name of ['caller', 'refusal', 'cleanups', 'rateAccount']) http.decorateRequest(name, null)
  http.addHook('onRequest', async (request) => {
    request.cleanups = new Set()
  })
  const services = { config, metrics: { shed: () => undefined }, store: { onGroupCommit: () => undefined } }
  await registerLoadShedding(http, services as unknown as Services, { has: () => false } as never)
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  http.get('/slow', async () => held)
  registerPages(http, {
    config,
    contract: () => Promise.reject(new Error('Not asked.')),
    assertInstalled: () => undefined,
  })
  const ask = async (url: string): Promise<number> => (await http.inject({ method: 'GET', url })).statusCode
  const full = defaultLimits.inFlight + defaultLimits.queued
  const slow = Array.from({ length: full + 1 }, () => ask('/slow'))
  expect(await Promise.race(slow)).toBe(503)
  expect(
    await Promise.all([ask('/slow'), ask(base), ask(`${base}/files/x/page.css`), ask(`${base}/static/swagger-ui.css`)]),
  ).toEqual([503, 503, 200, 200])
  release()
  await Promise.all(slow)
  await http.close()
})

it('are compressed as the client accepts it, also with a cookie, and have one ETag for each encoding', async () => {
  const [url = ''] = (await filesOfPage()).filter((each) => each.endsWith('/page.css'))
  const plain = await get(url)
  expect([plain.headers['content-encoding'], plain.headers['content-type']]).toEqual([
    undefined,
    'text/css; charset=utf-8',
  ])
  expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  for (const [accepted, encoding, open] of [
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['gzip;q=0.5, br;q=0', 'gzip', gunzipSync],
  ] as const) {
    const packed = await get(url, { 'accept-encoding': accepted, cookie: 'a=b' })
    expect([packed.headers['content-encoding'], packed.headers.vary]).toEqual([
      encoding,
      expect.stringContaining('accept-encoding'),
    ])
    expect(open(packed.rawPayload).toString()).toBe(plain.body)
    const tag = String(packed.headers.etag)
    expect(tag).not.toBe(plain.headers.etag)
    const again = await get(url, { 'accept-encoding': accepted, 'if-none-match': tag })
    expect([again.statusCode, again.headers.etag]).toEqual([304, tag])
  }
})

it('are revalidated at an address of another version, and unknown names are not found', async () => {
  const old = await get(`${base}/files/another/page.css`)
  expect([old.statusCode, old.headers['cache-control']]).toEqual([200, 'no-cache'])
  const names = [`${base}/files/x/nothing.js`, `${base}/files/x/..%2f..%2fdocs.ts`, `${base}/static/index.html`]
  for (const url of names)
    expect([url, (await get(url, { accept: 'application/json' })).statusCode]).toEqual([url, 404])
  const script = await get(`${base}/static/swagger-ui-bundle.js`, { 'accept-encoding': 'br' })
  expect([script.statusCode, script.rawPayload.length < 500_000]).toEqual([200, true])
})
