// The documentation, the contract and the health checks.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { operations } from '../../src/contract/operations.gen.ts'
import { problemCodes } from '../../src/contract/output/problem-codes.ts'
import { version } from '../../src/installation/package-info.ts'
import { publish, publishedIn } from '../../src/installation/published-contract.ts'
import type { Volume } from '../../src/kernel/runtime/disk-space.ts'
import { startServer as listen, type Running } from '../../src/server.ts'
import { type Caller, contract, seededImage, startServer, testConfig } from '../support/app.ts'
import { isPostgres, openImage } from '../support/engine.ts'
import { useNewFolder } from '../support/folders.ts'
import { until } from '../support/until.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const paths = ['/documentation', '/documentation/errors', '/openapi.json', '/openapi.yaml']

const hashOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

describe('getHealth', () => {
  it('tells the version without a token', async () => {
    const { status, body } = await server.anonymous.get('//healthz')
    expect([status, body]).toEqual([200, { status: 'ok', version }])
  })
})

describe('getReadiness', () => {
  it('is ready while the database answers, and tells of a manual that is missing or old', async () => {
    const { status, body } = await server.anonymous.get('//readyz')
    expect([status, body]).toEqual([
      200,
      {
        status: 'ready',
        checks: {
          database: 'ok',
          database_role: 'primary',
          replica: 'none',
          documentation: 'ok',
          worker: 'off',
          mail: 'unconfigured',
          webhooks: { failing: 0, waiting: 0 },
          disk: 'ok',
          files: 'ok',
          maintenance: 'ok',
        },
      },
    ])

    const bare = await startServer({ published: () => null })
    const { status: still, body: told } = await bare.anonymous.get('//readyz')
    expect([still, told.checks.documentation]).toEqual([200, 'missing'])
    await bare.close()
  })

  // test/postgres/transactions.test.ts tests this with a PostgreSQL server.
  it.runIf(!isPostgres)(
    'answers 503 with Retry-After when the database does not answer, and says nothing of the cause',
    async () => {
      const broken = await startServer()
      await broken.store.close()
      const { status, body, headers } = await broken.anonymous.get('//readyz')
      expect([status, body.code, headers['retry-after']]).toEqual([503, 'unavailable', '5'])
      expect(body.detail).toBe('The database does not answer.')
      await broken.app.http.close()
    },
  )
})

describe('the disk of getReadiness', () => {
  const gibibyte = 1024 ** 3
  const disk = { free: 100 * gibibyte, size: 1000 * gibibyte, takes: Number.POSITIVE_INFINITY, probes: 0 }
  const volume: Volume = {
    room: async () => ({ free: disk.free, size: disk.size }),
    probe: async (_folder, bytes) => {
      disk.probes++
      if (bytes > disk.takes) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    },
  }
  const told = async () => {
    watched.clock.advanceMs(3000)
    const { status, body } = await watched.anonymous.get('//readyz')
    return status === 200 ? body.checks.disk : [status, body.code, body.detail]
  }
  const full = [503, 'unavailable', 'Nothing can be written: the disk is full, or it is read-only.']
  beforeEach(() => {
    Object.assign(disk, { free: 100 * gibibyte, takes: Number.POSITIVE_INFINITY, probes: 0 })
  })
  const watched = useNewServers({ volume })

  it('is low with less than 1 GiB or a twentieth free, and the server stays ready', async () => {
    expect(await told()).toBe('ok')
    disk.free = 49 * gibibyte
    expect(await told()).toBe('low')
    Object.assign(disk, { free: gibibyte - 1, size: 2 * gibibyte })
    expect(await told()).toBe('low')
    disk.free = gibibyte
    expect(await told()).toBe('ok')
  })

  it('is full when nothing can be written: 503 with Retry-After until there is room again', async () => {
    disk.takes = 1000
    expect(await told()).toEqual(full)
    expect((await watched.anonymous.get('//readyz')).headers['retry-after']).toBe('10')
    disk.takes = 100_000
    expect(await told()).toBe('ok')
  })

  it('asks the disk every three seconds at most, however often it is asked itself', async () => {
    await told()
    for (let times = 0; times < 5; times++) await watched.anonymous.get('//readyz')
    expect(disk.probes).toBe(1)
  })

  it('believes the database: after a write that had no room, more than a little must be free', async () => {
    watched.store.health = () => 'full'
    disk.takes = 100_000
    expect(await told()).toEqual(full)
    disk.takes = 2_000_000
    expect(await told()).toBe('ok')
    watched.store.retryWrite = async () => 'readonly'
    expect(await told()).toEqual(full)
  })

  it('is the worst of those that are written to: the database may be on another one', async () => {
    const elsewhere = '/elsewhere/disk'
    const rooms = new Map<string, number>()
    let isFull = false
    const two = await startServer({
      config: { databaseUrl: `sqlite:${elsewhere}/accord.db` },
      volume: {
        room: async (folder) => ({ free: rooms.get(folder) ?? 500 * gibibyte, size: 1000 * gibibyte }),
        probe: async (folder) => {
          if (isFull && folder === elsewhere) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
        },
      },
    })
    const asked = async () => {
      two.clock.advanceMs(60_000)
      const { status, body } = await two.anonymous.get('//readyz')
      return status === 200 ? body.checks.disk : status
    }
    expect(await asked()).toBe('ok')
    rooms.set(elsewhere, 1000)
    expect(await asked()).toBe('low')
    expect(await two.app.services.disk.room()).toEqual({ free: 1000, size: 1000 * gibibyte })
    isFull = true
    expect(await asked()).toBe(503)
    await two.close()
  })
})

describe('the published contract', () => {
  const folder = useNewFolder('published')
  const documentation = async (): Promise<string> =>
    (await installed.anonymous.get('//readyz')).body.checks.documentation
  beforeEach(() => {
    writeFileSync(join(folder, 'source.yaml'), readFileSync('openapi.yaml'))
  })
  const installed = useNewServers({ published: publishedIn(join(folder, 'data'), join(folder, 'source.yaml')) })

  it('counts as missing while a file of it is missing or half-written, and is found once it is whole', async () => {
    expect(await documentation()).toBe('missing')
    publish(join(folder, 'data'), { ...contract, 'x-contract-hash': hashOf(join(folder, 'source.yaml')) })
    expect(await documentation()).toBe('ok')
    const json = join(folder, 'data', 'openapi.json')
    const whole = readFileSync(json)
    const later = (seconds: number) => utimesSync(json, 1e9 + seconds, 1e9 + seconds)
    writeFileSync(json, whole.subarray(0, 100))
    later(1)
    expect(await documentation()).toBe('missing')
    expect((await installed.anonymous.get('/openapi.json')).status).toBe(404)
    writeFileSync(json, whole)
    later(2)
    expect(await documentation()).toBe('ok')
    rmSync(json)
    expect(await documentation()).toBe('missing')
  })

  it('is outdated as soon as openapi.yaml is edited, also under a running server', async () => {
    const source = join(folder, 'source.yaml')
    publish(join(folder, 'data'), { ...contract, 'x-contract-hash': hashOf(source) })
    expect(await documentation()).toBe('ok')
    writeFileSync(source, 'openapi: 3.1.1')
    utimesSync(source, 1e9, 1e9)
    expect(await documentation()).toBe('outdated')
    rmSync(source)
    expect(await documentation()).toBe('ok')
  })
})

describe('getDocumentation', () => {
  it('is a page under a content security policy that allows no other host and no inline script', async () => {
    const { status, headers, text } = await server.anonymous.get('/documentation')
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(String(headers['content-security-policy'])).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    )
    expect(text).not.toMatch(/https?:\/\//)
  })

  it('escapes the name of the product', async () => {
    const named = await startServer({ config: { appName: '<b>"R\\D" & Co</b>' } })
    const { text } = await named.anonymous.get('/documentation')
    expect(text).toContain('<title>&lt;b&gt;&quot;R\\D&quot; &amp; Co&lt;/b&gt; API</title>')
    expect(text).not.toContain('<b>"R')
    expect((await named.anonymous.get('/documentation/errors')).text).not.toContain('<b>')
    await named.close()
  })

  it('answers 404 with a problem that names the install command before the installation, and so do its neighbors', async () => {
    const bare = await startServer({ published: () => null })
    for (const path of paths) {
      const { status, body } = await bare.anonymous.get(path)
      expect([path, status, body.code]).toEqual([path, 404, 'not_found'])
      expect(body.detail).toContain('accord install')
    }
    await bare.close()
  })

  it.each(paths)('knows GET, HEAD and OPTIONS at %s and refuses the rest', async (path) => {
    const url = `/api/admin${path}`
    const head = await server.inject({ method: 'HEAD', url })
    expect([head.statusCode, head.body]).toEqual([200, ''])
    const options = await server.inject({ method: 'OPTIONS', url })
    expect([options.statusCode, options.headers.allow]).toEqual([204, 'GET, HEAD, OPTIONS'])
    const posted = await server.anonymous.post(path, {})
    expect([posted.status, posted.body.code, posted.headers.allow]).toEqual([
      405,
      'method_not_allowed',
      'GET, HEAD, OPTIONS',
    ])
  })
})

describe('getErrorCatalogue', () => {
  it('has an anchor for every problem code', async () => {
    const { text } = await server.anonymous.get('/documentation/errors')
    for (const [code, [status]] of Object.entries(problemCodes))
      expect(text).toMatch(new RegExp(`<section id="${code}">.*${status}`))
  })
})

describe('getOpenapiJson', () => {
  it('is the contract, with an ETag that answers 304 until it changes', async () => {
    const { status, body, headers } = await server.anonymous.get('/openapi.json')
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
    expect(body).toEqual(contract)
    const etag = String(headers.etag)
    const again = await server.anonymous.get('/openapi.json', { headers: { 'if-none-match': `"other", ${etag}` } })
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag])
    expect((await server.anonymous.get('/openapi.json', { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  it('holds only the operations the caller may use, on request', async () => {
    const idsOf = async (caller: Caller) => {
      const { body } = await caller.get('/openapi.json?mine=true')
      return Object.values(body.paths as object).flatMap((item) =>
        Object.values(item).map((each: any) => each.operationId),
      )
    }
    const reader = await idsOf(await server.as(1, ['leads:read']))
    expect([reader.includes('listLeads'), reader.includes('createLead'), reader.includes('listUsers')]).toEqual([
      true,
      false,
      false,
    ])
    expect(reader).toContain('login')
    expect(await idsOf(server.admin)).toHaveLength(Object.keys(operations).length)
    expect((await server.anonymous.get('/openapi.json?mine=true')).status).toBe(401)
    expect((await server.admin.get('/openapi.json?mine=maybe')).body.errors).toEqual({
      'query.mine': ['Must be true or false.'],
    })
    const { headers } = await server.admin.get('/openapi.json?mine=true')
    expect(headers['cache-control']).toBe('private, no-cache')
  })

  it('is where the documentation page finds it', async () => {
    const { status, headers } = await server.anonymous.get('/documentation/json')
    expect([status, headers.location]).toEqual([302, '../openapi.json'])
  })
})

describe('getOpenapiYaml', () => {
  it('says what the JSON says, with an ETag of its own', async () => {
    const { text, headers } = await server.anonymous.get('/openapi.yaml')
    expect(headers['content-type']).toBe('application/yaml; charset=utf-8')
    expect(parse(text)).toEqual((await server.anonymous.get('/openapi.json')).body)
    expect(headers.etag).not.toBe((await server.anonymous.get('/openapi.json')).headers.etag)
  })
})

describe('a server that stops', () => {
  async function running(): Promise<Running> {
    const dataDir = mkdtempSync(join(tmpdir(), 'accord-stopping-'))
    const store = await openImage(await seededImage())
    const started = await listen(testConfig({ dataDir, host: '127.0.0.1', port: 0, worker: true }), store)
    return { ...started, close: () => started.close().finally(() => rmSync(dataDir, { recursive: true, force: true })) }
  }

  it('begins no more work in the background while requests come to their end', async () => {
    const { app, close } = await running()
    const { http, worker } = app
    const said: string[] = []
    const stop = worker.stop.bind(worker)
    worker.stop = (graceMs) => stop(graceMs).then(() => void said.push('worker'))
    const closeHttp = http.close.bind(http)
    let letGo = (): void => undefined
    const isAnswered = new Promise<void>((resolve) => {
      letGo = resolve
    })
    http.close = (async () => {
      await isAnswered
      await closeHttp()
      said.push('http')
    }) as unknown as typeof http.close
    const closed = close()
    await until(() => said.length > 0)
    letGo()
    await closed
    expect(said).toEqual(['worker', 'http'])
  })

  it('stops the worker and closes the database also when something else cannot be stopped, and says so', async () => {
    const { app, store, close } = await running()
    let isStopped = false
    const stop = app.worker.stop.bind(app.worker)
    app.worker.stop = (graceMs) =>
      stop(graceMs).then(() => {
        isStopped = true
      })
    app.scheduler.stop = async () => {
      throw new Error('The scheduler does not let go.')
    }
    await expect(close()).rejects.toThrow('The scheduler does not let go.')
    expect(isStopped).toBe(true)
    // On PostgreSQL the connections belong to the tests and stay open.
    if (!isPostgres) await expect(store.db.selectFrom('jobs').selectAll().execute()).rejects.toThrow()
  })
})
