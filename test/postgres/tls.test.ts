// Encrypted connections to a primary and its standby: each host shows a certificate of an authority
// that the URL names, and Accord checks the certificate of the host that it connects to.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { prepareStore, startServer, type TestServer } from '../support/app.ts'
import { useFolder } from '../support/folders.ts'
import { type Cluster, hasReplayed, serverUser, startCluster, startStandby } from '../support/postgres-cluster.ts'
import { needing } from '../support/programs.ts'
import { until } from '../support/until.ts'

const { describe } = needing('pg_basebackup', 'openssl')

const folder = useFolder('tls')
let primary: Cluster
let standby: Cluster
let server: TestServer

/** Makes an authority and, signed by it, a certificate for the host. Returns the three paths. */
function certify(host: string) {
  const path = (name: string): string => join(folder, `${host}-${name}.pem`)
  const openssl = (...args: string[]): unknown => execFileSync('openssl', args, { stdio: 'pipe' })
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
  openssl(...request, '-subj', `/CN=Authority of ${host}`, '-keyout', path('authority-key'), '-out', path('authority'))
  const signer = ['-CA', path('authority'), '-CAkey', path('authority-key')]
  const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=${host.includes('.') ? 'IP' : 'DNS'}:${host}`]
  openssl(...request, ...signer, ...names, '-keyout', path('key'), '-out', path('certificate'))
  return { authority: path('authority'), certificate: path('certificate'), key: path('key') }
}
type Certified = ReturnType<typeof certify>

let ours: Certified
let foreign: Certified

beforeAll(async () => {
  chmodSync(folder, 0o755)
  ours = certify('127.0.0.1')
  foreign = certify('localhost')
  const user = serverUser()
  if (user !== null) chownSync(ours.key, user.uid, user.gid)
  const rules = join(folder, 'hba.conf')
  // The database is reached with TLS only.
  writeFileSync(
    rules,
    ['hostssl crm all all trust', 'host postgres all all trust', 'host replication all all trust', ''].join('\n'),
  )
  primary = await startCluster({
    settings: [
      ...['fsync = off', 'shared_buffers = 64MB', 'ssl = on', `hba_file = '${rules}'`],
      ...[`ssl_cert_file = '${ours.certificate}'`, `ssl_key_file = '${ours.key}'`],
      'dynamic_shared_memory_type = mmap',
    ],
  })
  standby = await startStandby(primary, 'standby')
  await primary.query('postgres', 'create database crm')
  const store = openStore(urlOf([primary]))
  await prepareStore(store)
  await store.close()
}, 300_000)
afterEach(() => server?.close())
afterAll(() => {
  standby?.stop()
  primary?.stop()
})

const urlOf = (
  clusters: readonly Cluster[],
  { host = '127.0.0.1', authority = ours.authority, mode = 'verify-full' } = {},
): string =>
  `postgres://accord@${clusters.map(({ port }) => `${host}:${port}`).join(',')}/crm?target_session_attrs=read-write&sslmode=${mode}&sslrootcert=${authority}`

const serve = async (url: string): Promise<void> => {
  server = await startServer({ open: () => openStore(url, { postgres: { max: 4 } }) })
}
const connect = async (url: string): Promise<string> => {
  const store = openStore(url, { postgres: { max: 1 } })
  try {
    await store.db.selectFrom('roles').select('id').execute()
    return 'connected'
  } catch (error) {
    return String((error as Error).cause ?? error)
  } finally {
    await store.close()
  }
}

describe('a URL with several hosts and sslmode=verify-full', () => {
  it('refuses a server whose certificate another authority signed, or that names another host', async () => {
    expect(await connect(urlOf([primary]))).toBe('connected')
    expect(await connect(urlOf([primary], { mode: 'disable' }))).toMatch(/no pg_hba.conf entry.*no encryption/)
    expect(await connect(urlOf([primary], { authority: foreign.authority }))).toMatch(/certificate/)
    expect(await connect(urlOf([primary], { host: 'localhost' }))).toMatch(/altnames/)
    expect(await connect(urlOf([standby, primary], { authority: foreign.authority }))).toMatch(/certificate/)
  })

  it('leads to the primary, and after a failover to the new one, with every connection encrypted', async () => {
    await serve(urlOf([standby, primary]))
    expect((await server.admin.post('/sources', { name: 'Before' })).status).toBe(201)
    const [row] = await primary.query<{ plain: string; encrypted: string }>(
      'postgres',
      `select count(*) filter (where not ssl) as plain, count(*) filter (where ssl) as encrypted
       from pg_stat_ssl join pg_stat_activity using (pid) where datname = 'crm'`,
    )
    expect(row?.plain).toBe('0')
    expect(Number(row?.encrypted)).toBeGreaterThan(0)
    await until(() => hasReplayed(standby, primary))
    primary.kill()
    await standby.promote()
    await expect.poll(async () => (await server.admin.post('/sources', { name: 'After' })).status).toBe(201)
    const { body } = await server.admin.get('/sources')
    const names: string[] = body.data.map(({ name }: { name: string }) => name)
    expect(names.filter((name) => name === 'Before' || name === 'After').sort()).toEqual(['After', 'Before'])
  })
})
